"""A data set: people with features, a label and a sensitive attribute."""

# `fpbench check .` runs it with three groups, and twice with one seed, and checks that it does not
# modify its input. If it has no answer, it raises `fpbench.InputError`. The difficult inputs:
# - its files are missing
# - its files are empty, truncated or invalid
# - parameters out of their range (which the `Field` refuses)

import numpy as np
from pydantic import Field

from fpbench import Dataset, Table, hookimpl, table
from fpbench.plugin import DataHome


class Example(Dataset):
    """Synthetic people: replace this by reading your file, see `DataHome.find`."""

    name = "example-name"
    summary = "synthetic people with two features"

    rows: int = Field(500, ge=20, description="number of people")
    seed: int = Field(0, ge=0, description="seed of the people, the same for every run")

    def load(self, home: DataHome) -> Table:
        """Make the table."""
        import pandas as pd

        rng = np.random.default_rng(self.seed)
        sex = rng.choice(["Female", "Male"], self.rows)
        age = rng.integers(18, 90, self.rows)
        hours = rng.normal(35, 5, self.rows) + 5 * (sex == "Male")
        paid = (hours + rng.normal(0, 5, self.rows) > 38).astype(int)
        frame = pd.DataFrame({"age": age, "hours": hours, "sex": sex, "paid": paid})
        return table(frame, label="paid", sensitive="sex", name=self.name)


@hookimpl
def fpbench_datasets() -> list[type[Dataset]]:
    """Register the component."""
    return [Example]

"""A data set: people with features, a label and a sensitive attribute."""

# `fpbench check .` tries it with three groups and twice with one seed, and sees whether it changes
# what it is given. Where it has no answer, it raises `fpbench.InputError`. What is tried:
# - its files are missing
# - its files are empty, cut off, or hold rubbish
# - parameters out of their range (which the `Field` refuses)

import numpy as np
from pydantic import Field

from fpbench import DataHome, Dataset, Table, hookimpl, table


class Example(Dataset):
    """Made-up people: put the reading of your file here, see `DataHome.find`."""

    name = "example-name"
    summary = "made-up people with two features"

    rows: int = Field(500, ge=20, description="number of people")
    seed: int = Field(0, ge=0, description="of the people: a data set is the same for every run")

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
    """Register it."""
    return [Example]

"""How a data set is run by the kit, and what its table must be."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from fpbench.components.attack_kinds import Dataset
from fpbench.data.data_files import DataHome
from fpbench.data.table import Table
from fpbench.execution.work.actions import ACTIONS
from fpbench.testing.stages import Attempts, Stage
from fpbench.testing.world import step

_RUBBISH = {
    "empty": b"",
    "no text": b"\x00\xff\xfe rubbish\n,,,\n" * 5,
    "of other columns": b"a,b,c\n1,2,3\n",
}
"""What files may hold that are not what a data set reads."""


class DatasetStage(Stage):
    """Loads."""

    groups = False

    def given(self, component: Dataset, k: int, home: DataHome) -> Any:
        """The data directories."""
        return (home,)

    def run(self, component: Dataset, given: Any, seed: int) -> Table:
        """Load."""
        table: Table = ACTIONS["load"](component, given, step(seed))
        return table

    def check(self, component: Dataset, given: Any, result: Any) -> None:
        """A table, which has checked itself, of as many groups as were announced."""
        assert isinstance(result, Table), f"load gave a {type(result).__name__}, not a Table"
        k = component.n_groups
        assert k in (None, len(result.groups)), f"n_groups says {k}, and there are {result.groups}"
        both = {*result.features.columns} & {*result.sensitive.columns}
        assert not both, f"sensitive columns are features, too: {', '.join(sorted(both))}"
        result.domain.check_names(result.features.columns)

    def attempts(self, component: Dataset, home: DataHome) -> Attempts:
        """Its files are not there, or hold something else."""
        nowhere = DataHome((home.directories[0] / "nowhere",))
        if component.files and component.absent(nowhere):
            yield "its files are missing", lambda: component.load(nowhere)
        for what, content in _RUBBISH.items():
            rubbish = home.directories[0] / what.replace(" ", "-")
            if _written(component, rubbish, content) and not component.absent(DataHome((rubbish,))):
                yield f"its files are {what}", partial(_load, component, DataHome((rubbish,)))


def _load(component: Dataset, home: DataHome) -> None:
    component.load(home)
    raise AssertionError("they are loaded")


def _written(component: Dataset, folder: Path, content: bytes) -> bool:
    """Whether the files it reads are now in a folder, with this content."""
    places = [folder.resolve() / file.name for file in component.files]
    # A path that leads elsewhere, such as an absolute one, is somebody's file.
    if not all(place.resolve().is_relative_to(folder.resolve()) for place in places):
        return False
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return bool(places)

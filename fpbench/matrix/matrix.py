"""A matrix file, read and validated: component names and parameters, not components."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError, MatrixError, suggest_name
from fpbench.base.toml_files import check_depth, read_toml
from fpbench.base.validation import validate
from fpbench.components.names import KINDS
from fpbench.matrix.axes import MAX_CELLS, ComponentChoice, check_exclude, expand_axes
from fpbench.matrix.expectations import (
    Expectation,
    SummaryTable,
    parse_expectations,
    parse_summaries,
)
from fpbench.matrix.limits import NO_LIMITS, Limits
from fpbench.matrix.settings import Settings, read_settings


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Shares(_Table):
    """The parts a table is cut into, as shares of its rows; they sum to at most 1.

    `test = "original"` takes the test set that the data's authors publish; the others are then
    shares of the remaining rows.
    """

    train: float = Field(
        1 / 3, gt=0, le=1,
        description="share of the rows for training; by default, attacks are about their people",
    )  # fmt: skip
    test: Annotated[float, Field(gt=0, lt=1)] | Literal["original"] = Field(
        1 / 3,
        description='share of the rows on which it is tested and audited; `"original"`: the test '
        "set of the data's authors",
    )
    attack: float = Field(
        1 / 3, ge=0, lt=1, description="share of the rows that the adversary knows, groups included"
    )
    target: Literal["training", "held-out"] = Field(
        "training",
        description="whom claims and attacks are about: the people that the model is trained on, "
        'or (`"held-out"`) those on which it is tested',
    )

    @property
    def total(self) -> float:
        """Share of the available rows that are used."""
        return self.train + self.attack + (0 if isinstance(self.test, str) else self.test)


HELD_OUT = "held-out"
"""The `target` of a split whose model was not trained on the people attacked."""


class Ranking(_Table):
    """How the leaderboard ranks."""

    rank_by: str = Field(
        "with_accuracy",
        description="the measure, greatest first (for `error`, least first); `gain` for the "
        "paper's boards",
    )


_PROFILE = re.compile(r"[\w-]{1,100}")
_Seed = Annotated[int, Field(ge=0, lt=2**63)]
_Seeds = Annotated[int, Field(ge=1)] | Annotated[list[_Seed], Field(min_length=1)]
_Choices = Annotated[list[dict[str, Any]], Field(min_length=1)]
_FIELDS: dict[str, Any] = {
    "title": (str, Field("", description="text, shown above leaderboards")),
    "seeds": (_Seeds, Field(1, description="how many seeds, counted from 0; or a list of them")),
    "split": (
        Shares,
        Field(Shares(), description="`[split]`: the parts that a data set is cut into"),
    ),
    "exclude": (
        list[dict[str, str]],
        Field(
            [],
            description="`[[exclude]]`: combinations to leave out: kind = name or label, which "
            "all must match",
        ),
    ),
    "leaderboard": (
        Ranking,
        Field(Ranking(), description="`[leaderboard]`: how rows are ranked"),
    ),
    "limits": (Limits, Field(NO_LIMITS, description="`[limits]`: what a step may take")),
    "expect": (
        list[dict[str, Any]],
        Field(
            [],
            description="`[[expect]]`: statements about the results, which `fpbench reproduce` "
            "judges",
        ),
    ),
    "summary": (
        list[dict[str, Any]],
        Field([], description="`[[summary]]`: tables that `fpbench reproduce` prints"),
    ),
    **dict.fromkeys(KINDS, (_Choices | None, None)),
}
_OPTIONS = ("jobs", "engine", "scheduler", "retries", "out", "fresh", "strict")
"""Options of `fpbench run` that are taken for keys."""
_LISTED = ("exclude", "expect", "summary")
"""Tables, besides those of components, of which there may be several."""
_File: type[BaseModel] = create_model("_File", __base__=_Table, **_FIELDS)


@dataclass(frozen=True)
class Matrix:
    """A validated matrix."""

    title: str
    seeds: tuple[int, ...]
    shares: Shares
    axes: dict[str, tuple[ComponentChoice, ...]]
    """Choices of every kind; empty where the matrix names none."""
    exclude: tuple[dict[str, str], ...]
    rank_by: str
    limits: Limits
    """Time and memory that a step may take; they change no cell."""
    expect: tuple[Expectation, ...]
    """The `[[expect]]` tables: statements about the results."""
    summaries: tuple[SummaryTable, ...]
    """The `[[summary]]` tables."""
    profile: str | None
    """The chosen profile."""
    profiles: tuple[str, ...]
    """All profiles of the file."""
    seeds_in_full: int
    """Number of seeds of the file itself, without a profile or other seeds of the user."""
    origin: str
    """The file it was read from, for messages."""
    text: str
    """The file itself, or JSON of the mapping."""
    file_name: str
    """Name of the copy in a run directory."""
    chosen: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Labels of the components to run now, by kind; of other kinds, all are run."""

    def chooses(self, labels: Mapping[str, str]) -> bool:
        """Whether the cell of these labels by kind is to be run now."""
        return all(labels[kind] in own for kind, own in self.chosen.items() if kind in labels)

    def canonical(self) -> str:
        """Canonical JSON of all that determines the cells, except seeds: a run may get more."""
        axes = {
            kind: [[c.use, c.label, c.parameters] for c in choices]
            for kind, choices in self.axes.items()
        }
        identity = [self.shares.model_dump(), axes, list(self.exclude)]
        return json.dumps(identity, sort_keys=True, default=str)


def read(
    source: str | Path | Mapping[str, Any],
    profile: str | None = None,
    seeds: int | None = None,
    max_cells: int = MAX_CELLS,
    settings: Iterable[str] = (),
    *,
    origin: str = "matrix",
) -> Matrix:
    """The matrix in a TOML file, or in a mapping of the same keys.

    `profile`: the profile whose keys replace those of the matrix. `seeds`: number of seeds, instead
    of those of the file. `max_cells`: a larger matrix is refused before anything is expanded.
    `settings`: what to choose and to override: `learner=plain`, `dataset.rows=500`.

    Raises MatrixError if it cannot be read or is not valid; names file, table, key, value and the
    nearest valid name.
    """
    options = profile, seeds, max_cells, read_settings(settings)
    if isinstance(source, Mapping):
        check_depth(source, origin)
        return _validate(dict(source), origin, _write_json(source), "matrix.json", *options)
    path = Path(source)
    text, data = read_toml(path)
    return _validate(data, str(path), text, "matrix.toml", *options)


def _write_json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, default=str, indent=2)


def _read_profiles(data: dict[str, Any], origin: str) -> dict[str, dict[str, Any]]:
    """The profiles of a matrix by name."""
    profiles: Any = data.get("profile", {})
    if not (isinstance(profiles, dict) and all(isinstance(p, dict) for p in profiles.values())):
        raise MatrixError(f"{origin}: profile: must be tables, [profile.NAME]")
    for name, keys in profiles.items():
        if not _PROFILE.fullmatch(name):  # run directories are named after it
            raise MatrixError(
                f"{origin}: profile: {name!r}: a name has letters, digits, - and _ only"
            )
        if "profile" in keys:
            raise MatrixError(f"{origin}: [profile.{name}]: a profile cannot hold another")
    return profiles


def _count_seeds(seeds: Any) -> int:
    """Number of seeds of a file; 1 if it is not valid, as a profile may replace it."""
    return len(seeds) if isinstance(seeds, list) else seeds if isinstance(seeds, int) else 1


def _validate(
    data: dict[str, Any],
    origin: str,
    text: str,
    file_name: str,
    profile: str | None,
    seeds: int | None,
    max_cells: int,
    settings: Settings,
) -> Matrix:
    profiles = _read_profiles(data, origin)
    if profile is not None and profile not in profiles:
        hint = suggest_name(profile, profiles) if profiles else "the matrix has none"
        raise MatrixError(f"{origin}: no profile {profile!r}; {hint}")
    # Whole keys are replaced, none is merged.
    keys = {**data, **profiles.get(profile or "", {})}
    keys.pop("profile", None)
    if seeds is not None:
        if ("seeds",) in settings.overrides:
            raise InputError("--seeds and the setting seeds=... say the same: leave one out")
        keys["seeds"] = seeds
    keys = settings.override(keys, origin)
    if settings.changes_cells:  # the run directory keeps the matrix that was run
        text, file_name = _write_json(keys), "matrix.json"
    for name in (*KINDS, *_LISTED):
        if isinstance(keys.get(name), dict):
            raise MatrixError(
                f"{origin}: [{name}]: write [[{name}]], with two brackets: there may be several"
            )
        tables = keys.get(name) or []
        if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
            raise MatrixError(
                f'{origin}: {name}: must be a list of tables, such as [{{"use": "NAME"}}], not '
                f"{show_value(tables)}"
            )
    for name in _OPTIONS:
        if name in keys:
            raise MatrixError(
                f"{origin}: {name} is no key of a matrix, but an option: fpbench run {origin} "
                f"--{name}{'' if keys[name] is True else f' {keys[name]}'}"
            )
    file: Any = validate(_File, keys, origin)
    shares = file.split
    if shares.total > 1 + 1e-9:
        parts = "train and attack" if shares.test == "original" else "train, test and attack"
        raise MatrixError(f"{origin}: [split]: {parts} sum to more than 1")
    listed = isinstance(file.seeds, list)
    tables = {kind: getattr(file, kind) or [] for kind in KINDS}
    axes = expand_axes(tables, len(file.seeds) if listed else file.seeds, origin, max_cells)
    chosen_seeds = file.seeds if listed else range(file.seeds)
    if len(set(chosen_seeds)) < len(chosen_seeds):
        raise MatrixError(f"{origin}: seeds: the same seed is named twice")
    if axes["adversary"] and not shares.attack:
        raise MatrixError(
            f"{origin}: [split]: attack: is 0, so the adversaries have no data to learn from"
        )
    check_exclude(file.exclude, axes, origin)
    return Matrix(
        title=file.title,
        seeds=tuple(chosen_seeds),
        shares=shares,
        axes=axes,
        exclude=tuple(file.exclude),
        rank_by=file.leaderboard.rank_by,
        limits=file.limits,
        expect=parse_expectations(file.expect, origin),
        summaries=parse_summaries(file.summary, origin),
        profile=profile,
        profiles=tuple(profiles),
        seeds_in_full=_count_seeds(data.get("seeds", 1)),
        origin=origin,
        text=text,
        file_name=file_name,
        chosen=settings.choose(axes, origin),
    )

"""A matrix file: what is to be combined with what. Knows the words, not what is behind them."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from fpbench.errors import MatrixError, nearest
from fpbench.expectations import Expectation, parse
from fpbench.kinds import ATTACK, AUDIT, KINDS
from fpbench.validation import validated


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Shares(_Table):
    """The parts a table is cut into, as shares of its rows; they sum to at most 1.

    `test = "original"` takes the test set that the data's authors publish; the others are then
    shares of the remaining rows.
    """

    train: float = Field(1 / 3, gt=0, le=1)
    test: Annotated[float, Field(gt=0, lt=1)] | Literal["original"] = 1 / 3
    attack: float = Field(1 / 3, ge=0, lt=1)

    @property
    def total(self) -> float:
        """Share of the rows that are used, of those that may be."""
        return self.train + self.attack + (0 if isinstance(self.test, str) else self.test)


class Ranking(_Table):
    """How the leaderboard ranks."""

    rank_by: str = "gain"


MAX_CELLS = 1_000_000
"""More cells than this are taken for a slip of the pen."""

_Seed = Annotated[int, Field(ge=0, lt=2**63)]
_Seeds = Annotated[int, Field(ge=1, le=MAX_CELLS)] | Annotated[list[_Seed], Field(min_length=1)]
_Choices = Annotated[list[dict[str, Any]], Field(min_length=1)]
_FIELDS: dict[str, Any] = {
    "title": (str, ""),
    "seeds": (_Seeds, 1),
    "split": (Shares, Shares()),
    "exclude": (list[dict[str, str]], []),
    "leaderboard": (Ranking, Ranking()),
    "expect": (list[dict[str, Any]], []),
    **dict.fromkeys(KINDS, (_Choices | None, None)),
}
_File: type[BaseModel] = create_model("_File", __base__=_Table, **_FIELDS)


@dataclass(frozen=True)
class Choice:
    """One value of one axis: a component by name, with parameters."""

    kind: str
    use: str
    label: str
    parameters: dict[str, Any]
    where: str
    """Where it stands in the file, for messages."""


@dataclass(frozen=True)
class Matrix:
    """A validated matrix."""

    title: str
    seeds: tuple[int, ...]
    shares: Shares
    axes: dict[str, tuple[Choice, ...]]
    """Choices of every kind; empty where the matrix names none."""
    exclude: tuple[dict[str, str], ...]
    rank_by: str
    expect: tuple[Expectation, ...]
    """What is expected of the results."""
    profile: str | None
    """The profile that was chosen."""
    profiles: tuple[str, ...]
    """Those that there are to choose from."""
    origin: str
    """The file it was read from, for messages."""
    text: str
    """The file itself, or JSON of the mapping."""
    file_name: str
    """What a run directory calls its copy."""

    def canonical(self) -> str:
        """JSON of all that decides which cells there are, but for the seeds.

        A run may be continued with more seeds, or shown with fewer; titles and ranking decide
        nothing.
        """
        axes = {
            kind: [[c.use, c.label, c.parameters] for c in choices]
            for kind, choices in self.axes.items()
        }
        said = [self.shares.model_dump(), axes, list(self.exclude)]
        return json.dumps(said, sort_keys=True, default=str)


def read(
    source: str | Path | Mapping[str, Any], profile: str | None = None, seeds: int | None = None
) -> Matrix:
    """Read a matrix from a TOML file, or from the same as a mapping.

    Parameters
    ----------
    source
        The file, or the mapping.
    profile
        The profile whose keys replace those of the matrix.
    seeds
        How many seeds, instead of what the matrix says.

    Raises
    ------
    MatrixError
        If it cannot be read or says something it may not say; names file, table, key, value and
        the nearest valid name.
    """
    if isinstance(source, Mapping):
        text = json.dumps(source, default=str, indent=2)
        return _matrix(dict(source), "matrix", text, "matrix.json", profile, seeds)
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
        return _matrix(tomllib.loads(text), str(path), text, "matrix.toml", profile, seeds)
    except OSError as error:
        raise MatrixError(f"{path}: cannot be read: {error.strerror or error}") from error
    # Besides TOMLDecodeError: numbers of too many digits, other encodings, nesting without end.
    except (ValueError, RecursionError) as error:
        if isinstance(error, MatrixError):
            raise
        raise MatrixError(f"{path}: not valid TOML: {error}") from error


def _profiles(data: dict[str, Any], origin: str) -> dict[str, dict[str, Any]]:
    """The profiles of a matrix by name."""
    profiles: Any = data.get("profile", {})
    if not (isinstance(profiles, dict) and all(isinstance(p, dict) for p in profiles.values())):
        raise MatrixError(f"{origin}: profile: must be tables, [profile.NAME]")
    for name, keys in profiles.items():
        if "profile" in keys:
            raise MatrixError(f"{origin}: [profile.{name}]: a profile cannot hold another")
    return profiles


def _matrix(
    data: dict[str, Any],
    origin: str,
    text: str,
    file_name: str,
    profile: str | None,
    seeds: int | None,
) -> Matrix:
    profiles = _profiles(data, origin)
    if profile is not None and profile not in profiles:
        hint = nearest(profile, profiles) if profiles else "the matrix has none"
        raise MatrixError(f"{origin}: no profile {profile!r}; {hint}")
    # Whole keys are replaced, none is merged.
    said = {**data, **profiles.get(profile or "", {})}
    said.pop("profile", None)
    file: Any = validated(_File, said if seeds is None else {**said, "seeds": seeds}, origin)
    shares = file.split
    if shares.total > 1 + 1e-9:
        parts = "train and attack" if shares.test == "original" else "train, test and attack"
        raise MatrixError(f"{origin}: [split]: {parts} sum to more than 1")
    chosen = file.seeds if isinstance(file.seeds, list) else range(file.seeds)
    if len(set(chosen)) < len(chosen):
        raise MatrixError(f"{origin}: seeds: the same seed is named twice")
    axes = {kind: tuple(_expanded(kind, getattr(file, kind) or [], origin)) for kind in KINDS}
    _check_axes(axes, origin)
    if axes["adversary"] and not shares.attack:
        raise MatrixError(
            f"{origin}: [split]: attack: is 0, and leaves the adversaries nothing to learn from"
        )
    _check_exclude(file.exclude, axes, origin)
    attacks = math.prod(len(axes[kind]) for kind in ATTACK)
    audits = math.prod(len(axes[kind]) or 1 for kind in AUDIT) if axes["auditor"] else 0
    _check_size((attacks + audits) * len(chosen), f"{origin}: is")
    return Matrix(
        title=file.title,
        seeds=tuple(chosen),
        shares=shares,
        axes=axes,
        exclude=tuple(file.exclude),
        rank_by=file.leaderboard.rank_by,
        expect=parse(file.expect, origin),
        profile=profile,
        profiles=tuple(profiles),
        origin=origin,
        text=text,
        file_name=file_name,
    )


def _expanded(kind: str, tables: list[dict[str, Any]], origin: str) -> Iterator[Choice]:
    """One choice for every combination of the swept values of every table."""
    for number, table in enumerate(tables, 1):
        where = f"{origin}: [[{kind}]] no. {number}"
        use, label = table.get("use"), table.get("label")
        if not isinstance(use, str):
            raise MatrixError(f'{where}: needs use = "NAME", the name of a {kind}')
        if label is not None and not (isinstance(label, str) and label):
            raise MatrixError(f"{where}: label: must be a text that is not empty")
        where += f" ({use})"
        given = {key: value for key, value in table.items() if key not in ("use", "label")}
        swept = {key: _swept(value, f"{where}: {key}") for key, value in given.items()}
        many = [key for key, values in swept.items() if len(values) > 1]
        _check_size(math.prod(map(len, swept.values())), f"{where}: sweeps")
        for combination in product(*swept.values()):
            parameters = dict(zip(swept, combination, strict=True))
            variants = (_variant(key, parameters[key]) for key in many)
            name = " ".join((label or use, *variants))
            yield Choice(kind, use, name, parameters, where)


def _variant(key: str, value: Any) -> str:
    """A swept value in a label: a word says itself what it is about, a number does not."""
    return value if isinstance(value, str) else f"{key}={value}"


def _swept(value: Any, where: str) -> list[Any]:
    """The values that a parameter takes: one, or those of its sweep."""
    if not (isinstance(value, dict) and len(value) == 1):
        return [value]
    ((how, said),) = value.items()
    if how == "sweep":
        if not isinstance(said, list) or not said:
            raise MatrixError(f"{where}: sweep: must be a list of at least one value")
        return said
    if how not in ("linspace", "geomspace"):
        return [value]
    numbers = isinstance(said, list) and len(said) == 3
    if not numbers or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in said):
        raise MatrixError(f"{where}: {how}: must be [low, high, number of values]")
    low, high, count = said
    if not isinstance(count, int) or not 1 <= count <= MAX_CELLS:
        raise MatrixError(
            f"{where}: {how}: the number of values must be in 1..{MAX_CELLS}, not {count!r}"
        )
    if how == "geomspace" and (low <= 0 or high <= 0):
        raise MatrixError(f"{where}: geomspace: both ends must be above 0")
    return [_between(how, low, high, i / max(count - 1, 1)) for i in range(count)]


def _between(how: str, low: float, high: float, part: float) -> float:
    """A value between two ends, as a short decimal: tolerances are taken as written."""
    value = low + (high - low) * part if how == "linspace" else low * (high / low) ** part
    return float(f"{value:.12g}")


def _check_axes(axes: dict[str, tuple[Choice, ...]], origin: str) -> None:
    for kind, choices in axes.items():
        seen: dict[str, Choice] = {}
        for choice in choices:
            if choice.label in seen:
                raise MatrixError(
                    f"{choice.where}: the label {choice.label!r} is taken by another {kind}; "
                    'give one of them label = "..."'
                )
            seen[choice.label] = choice
    for kind in ("dataset", "learner"):
        if not axes[kind]:
            raise MatrixError(f"{origin}: needs at least one [[{kind}]]")
    attack = [kind for kind in ATTACK[2:] if axes[kind]]
    if attack and len(attack) < 3:
        lacking = next(kind for kind in ATTACK[2:] if not axes[kind])
        raise MatrixError(
            f"{origin}: names a {attack[0]} but no [[{lacking}]]: an attack needs both"
        )
    if not attack and not axes["auditor"]:
        raise MatrixError(
            f"{origin}: nothing to measure: needs an attack ([[disclosure]], [[adversary]] and "
            "[[corrector]]) or an [[auditor]]"
        )
    for kind in AUDIT[3:]:
        if axes[kind] and not axes["auditor"]:
            raise MatrixError(f"{origin}: names a {kind} but no [[auditor]] that could use it")


def _check_size(cells: int, what: str) -> None:
    if cells > MAX_CELLS:
        raise MatrixError(f"{what} too large: {cells:,} combinations, more than {MAX_CELLS:,}")


def _check_exclude(
    exclude: list[dict[str, str]], axes: dict[str, tuple[Choice, ...]], origin: str
) -> None:
    for number, rule in enumerate(exclude, 1):
        where = f"{origin}: [[exclude]] no. {number}"
        if not rule:
            raise MatrixError(f"{where}: is empty, and would exclude everything")
        for kind, name in rule.items():
            if kind not in KINDS:
                raise MatrixError(f"{where}: unknown key {kind!r}; {nearest(kind, KINDS)}")
            names = {n for choice in axes[kind] for n in (choice.use, choice.label)}
            if name not in names:
                raise MatrixError(
                    f"{where}: {kind}: no {kind} {name!r} in this matrix; {nearest(name, names)}"
                )

"""Output of the data commands: data sets, their properties, and where their files are."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from fpbench.base.errors import InputError, PluginError
from fpbench.cli.screen import console
from fpbench.components.attack_kinds import Component, Dataset
from fpbench.components.catalog import Catalog
from fpbench.components.spec import specify
from fpbench.data.attributes import describe_attribute
from fpbench.data.data_files import DataHome, compute_sha256

_UNKNOWN = ("-", "-")
_OF_MATRICES = ("use", "label")
"""Keys of a matrix's tables that are not parameters."""


def show_missing_data(catalog: Catalog) -> None:
    """Show how many data sets are here, and how to get the others."""
    home, here, missing = DataHome.default(), 0, []
    for entry in catalog.of_kind("dataset"):
        try:
            cls = catalog.component("dataset", entry.name)
        except PluginError:  # which is told among the components
            continue
        absent = [place for place in _find_places(catalog, cls, home) if " missing: " in place]
        missing += [(entry.name, place) for place in absent]
        here += not absent
    console.show_listing(
        [(f"{here} data sets can be used; `fpbench data list` says where they are",)]
    )
    if missing:
        console.show_listing(missing)


def show_data(catalog: Catalog) -> None:
    """Show every dataset: people and features, share of label 1, and where its files are."""
    home = DataHome.default()
    rows = [("dataset", "rows x features", "label 1", "data")]
    for entry in catalog.of_kind("dataset"):
        try:
            cls = catalog.component("dataset", entry.name)
        except PluginError as error:
            rows.append((entry.name, *_UNKNOWN, f"broken: {error}"))
            continue
        about = getattr(cls, "about", None)
        known = _UNKNOWN
        if about is not None:
            known = (f"{about.rows:,} x {about.features}", f"{100 * about.label_rate:.1f} %")
        for number, place in enumerate(_find_places(catalog, cls, home)):
            rows.append((entry.name, *(known if number == 0 else ("", "")), place))
    console.show_listing(rows)


def _find_places(catalog: Catalog, cls: type[Component], home: DataHome) -> list[str]:
    """Where the files of a data set with its default parameters are, or how to get them."""
    if required := _list_required(cls):
        return [f"yours: parameters {', '.join(required)}"]
    dataset = _make_dataset(catalog, cls.name)
    if not dataset.files:
        return ["needs no files"]
    places = []
    for file in dataset.files:
        if not home.missing([file]):
            places.append(str(home.find(file)))
        elif file.url or type(dataset).fetch is not Dataset.fetch:
            gap = home.explain_gap()
            places.append(f"{file.name} missing: fpbench data fetch {dataset.name}{gap}")
        else:
            places.append(f"{file.name} missing: put it where FPBENCH_DATA points")
    return places


def parse_parameters(settings: Iterable[str]) -> dict[str, Any]:
    """Parameters from `KEY=VALUE`: a value as in a matrix; a bare word is a string.

    Raises InputError if there is no key, or it is not a parameter.
    """
    parameters: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not (key.strip() and equals):
            raise InputError(f"--set {setting!r}: must be KEY=VALUE")
        if key.strip() in _OF_MATRICES:
            raise InputError(f"--set {setting!r}: {key.strip()!r} is not a parameter of a data set")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        parameters[key.strip()] = value
    return parameters


def fetch(catalog: Catalog, names: list[str], parameters: dict[str, Any]) -> None:
    """Download files of data sets that are missing or differ from the original."""
    home = DataHome.default()
    for dataset in [_make_dataset(catalog, name, parameters) for name in names]:
        places = dataset.fetch(home)
        rows = [(place.name, str(place)) for place in places]
        console.show_listing(rows or [(dataset.name, "needs no files")])


def verify(catalog: Catalog, names: list[str]) -> bool:
    """Compare the files that are here with the known originals; True if none differs."""
    home, rows, good = DataHome.default(), [], True
    for dataset in _make_datasets(catalog, names):
        for file in dataset.files:
            if home.missing([file]):
                rows.append((dataset.name, file.name, "missing"))
                good = good and not names
                continue
            path = home.find(file)
            if not file.sha256:
                verdict = f"no checksum of an original is known: {path}"
            elif (actual := compute_sha256(path)) == file.sha256:
                verdict = "as published"
            else:
                sums = f"its sha256 is {actual}, that of the original {file.sha256}"
                verdict, good = f"DIFFERS from the known original: {path}; {sums}", False
            rows.append((dataset.name, file.name, verdict))
    console.show_listing(rows or [("these datasets need no files",)])
    return good


def show_about(cls: type[Component]) -> None:
    """Show facts about a data set's original, and how its groups are made by default."""
    if not issubclass(cls, Dataset):
        return
    if (about := cls.about) is not None:
        console.show_heading("with its default parameters")
        console.show_listing([
            ("rows", f"{about.rows:,}"),
            ("features", str(about.features)),
            ("label 1", f"{about.label} ({100 * about.label_rate:.1f} %)"),
            ("groups", " | ".join(about.groups)),
            ("source", about.source),
            ("licence", about.licence),
            ("dropped", about.dropped),
        ])  # fmt: skip
    field = cls.model_fields.get("sensitive")
    if field is not None and isinstance(field.default, tuple):
        console.show_heading("sensitive by default")
        console.show_listing([(describe_attribute(item),) for item in field.default])


def _list_required(cls: type[Component]) -> list[str]:
    return [name for name, field in cls.model_fields.items() if field.is_required()]


def _make_dataset(catalog: Catalog, name: str, parameters: dict[str, Any] | None = None) -> Dataset:
    dataset, _ = specify(catalog, "dataset", name, parameters or {}, f"dataset {name!r}")
    assert isinstance(dataset, Dataset)
    return dataset


def _make_datasets(catalog: Catalog, names: list[str]) -> list[Dataset]:
    """The named data sets; without names, all that work and need no parameters."""
    if names:
        return [_make_dataset(catalog, name) for name in names]
    datasets = []
    for entry in catalog.of_kind("dataset"):
        try:
            if not _list_required(catalog.component("dataset", entry.name)):
                datasets.append(_make_dataset(catalog, entry.name))
        except PluginError:  # a row of `fpbench plugins`
            continue
    return datasets

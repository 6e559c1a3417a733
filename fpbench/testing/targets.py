"""The checks of a distribution, a folder, a module or a class."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fpbench.base.arguments import to_path
from fpbench.base.errors import DISTRIBUTION, InputError, PluginError, suggest_name
from fpbench.base.trust import normalize_name
from fpbench.components.attack_kinds import Component
from fpbench.components.catalog import Catalog, Entry, Source, discover, discover_in
from fpbench.testing.cases import Case
from fpbench.testing.laws import LAWS, Check, Law


def checks(target: str | Path | type[Component]) -> list[Check]:
    """Every law for every component of a package.

    Parameters
    ----------
    target
        Name of an installed distribution; or path of a folder with a `pyproject.toml` that names
        plugins, of a Python package, or of a module (`.py`), which need not be installed; or a
        component's class, which need not be registered.

    Returns
    -------
    list of Check
        Never empty. Calling one tests it and gives a verdict with an `outcome` and, in words, the
        `reason`; its `law` has `words`.

    Raises
    ------
    InputError
        If the package does not exist, or has no component.
    PluginError
        If one of its plugins cannot be registered.
    """
    if isinstance(target, type):
        return list(_list_class_checks(target))
    catalog, names = _resolve(target)
    for broken in catalog.broken:
        if normalize_name(broken.source.distribution) in names:
            raise PluginError(f"plugin {broken.plugin!r} of {broken.source}: {broken.reason}")
    for source in catalog.left_out:
        if normalize_name(source.distribution) in names:
            raise InputError(f"{target}: third-party plugins are not loaded (--no-third-party)")
    entries = [entry for entry in catalog if _list_owners(entry) & names]
    if not entries:
        raise InputError(f"{target}: registers no component: nothing to test")
    return [check for entry in entries for check in list_entry_checks(catalog, entry)]


def _list_class_checks(cls: type[Component]) -> Iterator[Check]:
    catalog = Catalog()
    catalog.entries = dict(discover().entries)
    entry = Entry(cls.kind, cls.name, Source(cls.__module__, ""), cls)
    catalog.entries[entry.kind, entry.name] = entry
    return list_entry_checks(catalog, entry)


def _list_owners(entry: Entry) -> set[str]:
    return {normalize_name(source.distribution) for source in (entry.source, *entry.rivals)}


def _resolve(target: str | Path) -> tuple[Catalog, set[str]]:
    """The catalog to test in, and the distributions to test."""
    catalog, path = discover(), to_path("target", target)
    known = {owner for entry in catalog for owner in _list_owners(entry)}
    known |= {normalize_name(broken.source.distribution) for broken in catalog.broken}
    if isinstance(target, str):
        # A bare word that is both, such as `fpbench` next to its sources, means the distribution.
        name = DISTRIBUTION if target == "fpbench" else normalize_name(target)
        if name in known:
            return catalog, {name}
    if not path.exists():
        raise InputError(
            f"{target}: neither a path, nor an installed distribution with plugins; "
            f"{suggest_name(str(target), known)}"
        )
    catalog, source = discover_in(path)
    return catalog, {normalize_name(source.distribution)}


def list_entry_checks(catalog: Catalog, entry: Entry) -> Iterator[Check]:
    """The checks of one component."""
    directory = Path(tempfile.mkdtemp(dir=_make_scratch()))
    try:
        examples = catalog.component(entry.kind, entry.name).examples(directory)
        if not examples:
            raise PluginError("its examples are empty: nothing to test")
    except (Exception, SystemExit) as error:  # a plugin's code may raise anything
        yield _make_broken_check(catalog, entry, directory, error)
        return
    for number, parameters in enumerate(examples):
        label = f" ({number + 1})" if len(examples) > 1 else ""
        case = Case(catalog, entry, parameters, label, directory)
        yield from (Check(case, law) for law in LAWS if entry.kind in law.kinds)


def _make_broken_check(
    catalog: Catalog, entry: Entry, directory: Path, error: BaseException
) -> Check:
    """The only check of a component that cannot be imported."""

    def fail(case: Case) -> None:
        raise error

    return Check(Case(catalog, entry, {}, "", directory), Law(LAWS[0].words, fail))


@cache
def _make_scratch() -> Path:
    """A directory for files of examples, removed when this process ends."""
    _SCRATCH.append(tempfile.TemporaryDirectory(prefix="fpbench-check-"))
    return Path(_SCRATCH[-1].name)


_SCRATCH: list[tempfile.TemporaryDirectory[str]] = []

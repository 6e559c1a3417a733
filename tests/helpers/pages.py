"""The pages of the documentation, taken apart, and what their code takes for granted."""

import re
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fpbench.components.catalog import OWN_PLUGINS

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
}
READMES = {
    str(path.relative_to(ROOT)): path for path in sorted((ROOT / "plugins").glob("*/README.md"))
}
"""Those of plugins; their code needs what they bring, and runs in their own tests."""
ALL = {**PAGES, **READMES, "CHANGELOG.md": ROOT / "CHANGELOG.md"}


class Block(NamedTuple):
    """A block of code: its language, its text, and the line that it begins at."""

    language: str
    text: str
    line: int


def blocks(path, *languages):
    """The blocks of a page in these languages, or in all."""
    text = path.read_text(encoding="utf-8")
    found = [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 2)
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    ]
    return [block for block in found if not languages or block.language in languages]


def prose(path):
    """A page without its blocks."""
    return re.sub(r"^```\w*\n.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def joined(text):
    """Lines of shell, those that go on in the next one joined; words alone, without comments."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def anchors(path):
    """What headings of a page can be linked to by, as Markdown's `toc` names them."""
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} (.*)$", prose(path), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        slug = re.sub(r"[^\w\s-]", "", plain).strip().lower()
        found.append(re.sub(r"[-\s]+", "-", slug))
    return found


def links(path):
    """Where a page's links lead, without those to the web."""
    found = re.findall(r"\]\(\s*([^)\s]+)\s*\)", prose(path))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def names_package(matrix):
    """Whether the text of a matrix names a component of a package under plugins/.

    The package need not be installed; its own tests plan the matrix.
    """
    names = {name for _, name in OWN_PLUGINS}
    return not names.isdisjoint(re.findall(r'\buse = "([^"]*)"', matrix))


# What the code of some pages takes for granted.


def people(n=400, seed=0):
    """Features, labels, groups, and a tree that was trained on them."""
    import numpy as np
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(seed)
    group = rng.choice(["f", "m"], n)
    X = pd.DataFrame({"age": rng.integers(18, 80, n), "tests": rng.normal(size=n).round(3)})
    labels = (X["tests"] + 0.5 * (group == "m") + rng.normal(size=n) > 0).astype(int)
    return X, labels, group, DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, labels)


SMALL = """
seeds = 2
dataset = [{ use = "census-synthetic", rows = 600 }]
learner = [{ use = "plain" }, { use = "threshold-optimizer", metric = "statistical-parity" }]
disclosure = [{ use = "published", metric = "statistical-parity" }]
adversary = [{ use = "prior" }]
corrector = [{ use = "none" }, { use = "exact" }]
"""
"""A matrix in place of that of claims."""


@contextmanager
def readme(where):
    """A model, and people to attack and to report on."""
    X, labels, group, model = people()
    yield {"model": model, "X": X, "y": labels, "group": group}, str


@contextmanager
def claims_run(where):
    """A run in place of that of claims."""
    import fpbench

    (where / "small.toml").write_text(SMALL)
    fpbench.run(where / "small.toml", out=where / "runs" / "claims")
    yield {}, str


@contextmanager
def a_curator(where):
    """A curator in this process in place of a service, and an auditor's file of the same people."""
    from fpbench.privacy import Curator, Ledger

    X, labels, group, _ = people(3000)
    X.assign(hired=labels).to_csv(where / "auditor.csv", index=False)
    curator = Curator(group, ledger=Ledger(2.0))

    def here(code):
        return code.replace("from fpbench_curator import RemoteCurator\n", "").replace(
            'RemoteCurator("https://curator.example:8731", cafile="cert.pem")', "here"
        )

    yield {"here": curator}, here


@contextmanager
def nothing(where):
    """Most pages need nothing."""
    yield {}, str


GRANTED = {
    "README.md": readme,
    "docs/leaderboards.md": claims_run,
    "docs/audit-guide.md": a_curator,
}
"""What is there when the code of a page runs: names, and what the code is changed to."""

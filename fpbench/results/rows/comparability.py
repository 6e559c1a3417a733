"""Aspects in which two lines must agree to be ranked together.

An error at epsilon 1 says nothing about another at epsilon 1 with other neighbours, and a
correction that a solver did not finish says nothing about what the claim gives away. Lines that
differ in such aspects are ranked apart, and each ranking states what its lines have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fpbench.results.rows.lines import Tallies

UNPROVEN = "optimum not proven"
"""The statement on lines with a seed whose correction the solver did not prove."""

_ASPECTS = {
    "audit_metric": "metric", "neighbours": "neighbours", "delta": "delta", "noise": "noise",
    "claim_neighbours": "claim: neighbours", "claim_delta": "claim: delta",
    "claim_noise": "claim: noise", "model_neighbours": "learner: neighbours",
    "model_delta": "learner: delta",
}  # fmt: skip
"""Measures that qualify a guarantee, and their aspects."""
OF_CLAIMS = "claim: "
"""The beginning of the aspects of private claims."""
_SEVERAL = "several"


def describe_aspects(tally: Tallies) -> dict[str, list[str]]:
    """The statements of each line on its guarantees and proofs.

    Returns: for each aspect, such as `neighbours` of an audit, `claim: delta` of a private claim or
    `learner: neighbours` of a private learner: a text for each line, empty if it states nothing.
    """
    texts_of: dict[str, list[str]] = {}
    for name in tally.results.names:
        aspect = _ASPECTS.get(name)
        if aspect is None:
            continue
        stated = _collect_texts(tally, name)
        if not any(stated):
            continue
        texts = texts_of.setdefault(aspect, [""] * len(tally))
        for i, text in enumerate(stated):
            texts[i] = text or texts[i]
    proven = tally.means("proven")
    if proven is not None and (proven < 1).any():
        texts_of["proof"] = [UNPROVEN if share < 1 else "" for share in proven.tolist()]
    return texts_of


def _collect_texts(tally: Tallies, name: str) -> list[str]:
    """For each line the texts of its rows under a name."""
    results, texts_of = tally.results, [set[str]() for _ in range(len(tally))]
    positions, words = results.texts(name)
    rows = np.flatnonzero(positions >= 0)
    for line, word in _list_distinct(tally.line[rows], positions[rows]):
        if line >= 0:
            texts_of[line].add(words[word])
    numbers = results.numbers(name)
    rows = np.flatnonzero(~np.isnan(numbers))
    values, which = np.unique(numbers[rows], return_inverse=True)
    for line, value in _list_distinct(tally.line[rows], which):
        if line >= 0:
            texts_of[line].add(f"{values[value]:g}")
    return [next(iter(texts)) if len(texts) == 1 else _SEVERAL * bool(texts) for texts in texts_of]


def _list_distinct(lines: NDArray[np.int64], values: NDArray[np.int64]) -> list[tuple[int, int]]:
    if not len(lines):
        return []
    width = int(values.max()) + 1
    pairs = np.unique((lines + 1) * width + values)
    return [(int(pair) // width - 1, int(pair) % width) for pair in pairs.tolist()]


def split_classes(
    said: Mapping[str, Sequence[str]], lines: Sequence[int]
) -> dict[tuple[str, ...], list[int]]:
    """Lines that may be ranked together, by what sets them apart from the others.

    An aspect that only some lines state, all in the same way, separates no lines. An aspect that
    lines state differently does, and then separates lines that do not state it, too.

    `said`: as `describe_aspects` returns it.

    Returns: lines by their statement: empty if nothing separates them.
    """
    parting = [aspect for aspect, texts in said.items() if _splits_lines(aspect, texts, lines)]
    by_texts: dict[tuple[str, ...], list[int]] = {}
    for line in lines:
        by_texts.setdefault(tuple(said[aspect][line] for aspect in parting), []).append(line)
    named = {tuple(map(_describe_aspect, parting, texts)): mine for texts, mine in by_texts.items()}
    # Proven lines come first; the rest stays in the order of the plan.
    return dict(sorted(named.items(), key=lambda item: UNPROVEN in item[0]))


def _splits_lines(aspect: str, texts: Sequence[str], lines: Sequence[int]) -> bool:
    stated = {texts[line] for line in lines}
    return len(stated) > 1 if aspect == "proof" else len(stated - {""}) > 1


def _describe_aspect(aspect: str, text: str) -> str:
    if aspect == "proof":
        return text or "optimum proven"
    owner, _, word = aspect.rpartition(": ")
    statement = f"{word} {text}" if text else f"{word} not stated"
    return f"{owner}: {statement}" if owner else statement

"""Aspects in which two lines must agree to be ranked together.

An error at epsilon 1 says nothing about another at epsilon 1 with other neighbours, and a
correction that a solver did not finish says nothing about what the claim gives away. Lines that
differ in such aspects are ranked apart, and each ranking states what its lines have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def describe_aspects(tally: Tallies) -> dict[str, list[str]]:
    """The statements of each line on its guarantees and proofs.

    Returns: for each aspect, such as `neighbours` of an audit, `claim: delta` of a private claim or
    `learner: neighbours` of a private learner: a text for each line, empty if it states nothing.
    """
    statements: dict[str, list[str]] = {}
    for name in tally.results.names:
        if name in _ASPECTS:
            stated = [
                texts[0] if len(texts) == 1 else "several" * bool(texts)
                for texts in tally.texts(name, numbers=True)
            ]
            if any(stated):
                statements[_ASPECTS[name]] = stated
    proven = tally.means("proven")
    if proven is not None and (proven < 1).any():
        statements["proof"] = [UNPROVEN if share < 1 else "" for share in proven.tolist()]
    return statements


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
    classes: dict[tuple[str, ...], list[int]] = {}
    for line in lines:
        statement = tuple(_describe_aspect(aspect, said[aspect][line]) for aspect in parting)
        classes.setdefault(statement, []).append(line)
    # Proven lines come first; the rest stays in the order of the plan.
    return dict(sorted(classes.items(), key=lambda item: UNPROVEN in item[0]))


def _splits_lines(aspect: str, texts: Sequence[str], lines: Sequence[int]) -> bool:
    stated = {texts[line] for line in lines}
    return len(stated) > 1 if aspect == "proof" else len(stated - {""}) > 1


def _describe_aspect(aspect: str, text: str) -> str:
    if aspect == "proof":
        return text or "optimum proven"
    owner, _, word = aspect.rpartition(": ")
    statement = f"{word} {text}" if text else f"{word} not stated"
    return f"{owner}: {statement}" if owner else statement

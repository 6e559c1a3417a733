"""How accurate a guess of groups can be, where the law of the data is known."""

from __future__ import annotations

from collections.abc import Collection

from fpbench.data.sample import Sample


def measure_bayes(people: Sample, sees: Collection[str]) -> float | None:
    """Expected accuracy of the best possible guess from features and label, mean_i max_g P(g | i).

    Nobody who sees these, and nothing else that depends on the groups, can be more accurate on
    average. Predictions and scores of a model that was trained without the groups of these people,
    and is not told them, say nothing more. Others may: then this is no bound, and for the caller to
    leave out.

    Parameters
    ----------
    people
        Those who are attacked, with all that is known of them.
    sees
        The columns that the adversary sees of them.

    Returns
    -------
    float or None
        In [1 / K, 1]; None if the law is not known, or the adversary does not see both features and
        label.
    """
    chances = people.group_chances
    if chances is None or not len(people) or not {"features", "labels"} <= set(sees):
        return None
    return float(chances.max(axis=1).mean())

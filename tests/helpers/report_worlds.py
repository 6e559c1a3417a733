"""Small random reports, and all groups of people that they allow, read from the published frame."""

from itertools import product

import numpy as np
import pandas as pd

from fpbench import FairnessReport
from fpbench.claims import Facts

COUNTED = {
    "selection-rate": (None, None), "true-positive-rate": (1, None),
    "false-positive-rate": (0, None), "selected": (None, 1), "rejected": (None, 0),
    "true-positives": (1, 1), "false-positives": (0, 1), "false-negatives": (1, 0),
    "true-negatives": (0, 0),
}  # fmt: skip
"""Label and prediction whose people each metric counts."""
MODES = (
    "exact", "decimals", "nosizes", "nosizes-dec", "round", "min_group", "complementary", "min_cell",
    "series", "nearest", "midpoint", "controlled", "cell-key",
)  # fmt: skip
_SLACK = 1e-9


def make_world(seed):
    """A generator, people, predictions, labels, codes of their groups, and names of these."""
    rng = np.random.default_rng(seed)
    k = int(rng.choice([2, 2, 2, 3, 3, 4, 5]))
    n = int(rng.integers(max(4, k), {2: 13, 3: 9, 4: 8, 5: 7}[k]))
    X = pd.DataFrame({
        f"c{place}": rng.choice(list("pqrs")[: int(rng.integers(2, 5))], n)
        for place in range(int(rng.integers(1, 4)))
    })  # fmt: skip
    groups = rng.integers(0, k, n)
    groups[:k] = np.arange(k)
    return rng, X, rng.integers(0, 2, n), rng.integers(0, 2, n), groups, list("abcde"[:k])


def publish(rng, mode, X, predictions, labels, groups, names):
    """A report about them; InputError if what was drawn excludes each other."""
    metrics = rng.choice(list(COUNTED), int(rng.integers(1, 4)), replace=False).tolist()
    if rng.random() < 0.4 or mode in ("decimals", "nosizes", "nosizes-dec"):
        metrics = list(dict.fromkeys([*metrics[:1], "selection-rate"]))
    options = {
        "order": int(rng.integers(0, 4)), "metrics": metrics, "labels": labels,
        "min_cell": int(rng.integers(1, 6 if mode == "min_cell" else 3)), "rng": int(rng.integers(99)),
    }  # fmt: skip
    if mode in ("decimals", "nosizes-dec"):
        options["decimals"] = int(rng.integers(0, 4))
    if mode.startswith("nosizes"):
        options["sizes"] = False
    if mode == "round":
        options["round_to"] = int(rng.integers(2, 6))
    if mode in ("nearest", "midpoint", "controlled"):
        options |= {"round_to": int(rng.integers(2, 7)), "rounding": mode}
        if rng.random() < 0.3:
            options["min_group"] = int(rng.integers(1, 4))
    if mode == "cell-key":
        options["cell_keys"] = {"bound": int(rng.integers(1, 4)), "variance": 0.8}
    if mode in ("min_group", "complementary"):
        options |= {"min_group": int(rng.integers(1, 4)), "complementary": mode == "complementary"}
    kinds = pd.Categorical.from_codes(groups, categories=names)
    return FairnessReport.from_predictions(X, predictions, kinds, by=list(X), **options)


def list_vectors(k, n):
    """(V, n) all groups of n people."""
    return np.array(list(product(range(k), repeat=n)), np.int8)


def may_be(rounding, true, shown):
    """Whether true numbers may have been published as one, by the words of a frame."""
    *way, base = [*rounding.split(), "0"][:2] if " " in rounding else [rounding]
    m = int(base)
    if way == ["nearest"]:
        return np.floor(true / m + 0.5) * m == shown
    if way == ["midpoint"]:  # as R writes it: ceiling(x / m) * m - floor(m / 2) * (x != 0)
        return np.ceil(true / m) * m - m // 2 * (true != 0) == shown
    if way == ["cell-key"]:
        return (abs(true - shown) <= m) & ((true > 0) | (shown == 0))
    return abs(true - shown) < m


def allow(frame, X, predictions, labels, names, vectors):
    """(V,) which vectors of groups (V, n) are possible, by a published frame."""
    possible = np.ones(len(vectors), np.bool_)
    small = {}
    for row in frame.to_dict("records"):
        cell = tuple(row[c] if c in frame and isinstance(row.get(c), str) else "" for c in X)
        label, prediction = COUNTED[row["metric"]]
        inside = np.ones(len(X), np.bool_)
        for name, value in zip(X, cell, strict=True):
            if value:
                inside &= X[name].to_numpy() == value
        if label is not None:
            inside &= labels == label
        mine = vectors == names.index(row["group"])
        selected = mine[:, inside & (predictions == 1)].sum(axis=1)
        rejected = mine[:, inside & (predictions == 0)].sum(axis=1)
        n, value = (np.nan if row[x] is None else float(row[x]) for x in ("n", "value"))
        within, below = (float(row.get(x) or 0) for x in ("within", "below"))
        base = str(row.get("round_to") or "")
        counted = {None: selected + rejected, 1: selected, 0: rejected}[prediction]
        if np.isnan(value) and n != 0:
            if below > 0:
                small.setdefault((cell, row["metric"]), []).append(counted < below)
        elif base and prediction is None:
            shown = round(value * n) if n else 0
            possible &= may_be(base, selected, shown) & may_be(base, rejected, n - shown)
        elif base:
            possible &= may_be(base, counted, value)
        elif prediction is None:
            possible &= np.isnan(n) | (counted == n)
            if n != 0:
                rate = selected / np.maximum(counted, 1)
                possible &= (counted > 0) & (abs(rate - value) <= within + _SLACK)
        else:
            possible &= abs(counted - value) <= within + _SLACK
    for few in small.values():
        possible &= np.any(few, axis=0)
    return possible


def publish_world(seed, mode):
    """Reports, people, predictions (n, R), labels, groups, and their possible groups (n, K)."""
    *published, names, left = list_worlds(seed, mode)
    own = np.stack([(left == group).any(axis=0) for group in range(len(names))], axis=1)
    return *published, own


def list_worlds(seed, mode):
    """The same, names of groups, and all groups (W, n) of all people that are possible."""
    rng, X, predictions, labels, groups, names = make_world(seed)
    n, k = len(X), len(names)
    vectors = list_vectors(k, n)
    possible = np.ones(len(vectors), np.bool_)
    reports, shown = [], []
    for _ in range(int(rng.integers(2, 4)) if mode == "series" else 1):
        part = np.arange(n)
        if mode == "series":  # of people who overlap, perhaps of a model that was trained again
            part = np.sort(rng.choice(n, max(n - int(rng.integers(0, 3)), k), replace=False))
            part = part if len(set(groups[part])) == k else np.arange(n)
        again = np.where(rng.random(n) < 0.25 * (rng.random() < 0.5), 1 - predictions, predictions)
        kind = str(rng.choice(MODES[:6])) if mode == "series" else mode
        about = X.iloc[part].reset_index(drop=True), again[part], labels[part]
        report = publish(rng, kind, *about, groups[part], names)
        possible &= allow(report.to_frame(), *about, names, vectors[:, part])
        reports.append(report)
        shown.append(np.full(n, np.nan))
        shown[-1][part] = again[part]
    assert possible[(vectors == groups).all(axis=1)].all()
    return reports, X, np.column_stack(shown), labels, groups, names, vectors[possible]


def check_examples(facts, told, known=None):
    """Examples satisfy facts, and somebody of the same sets has each group that is seen in one."""
    assert all(facts.allows(groups) for groups in told.examples)
    if known is not None:
        assert (told.examples[0] == known).all()
    shown = (told.examples[:, :, None] == np.arange(facts.groups)).any(axis=0)
    alike = np.column_stack([facts.membership.toarray(), told.possible])
    kind = np.unique(alike, axis=0, return_inverse=True)[1].ravel()
    by_kind = np.zeros((kind.max(initial=0) + 1, facts.groups), bool)
    np.logical_or.at(by_kind, kind, shown)
    assert not len(told.examples) or (by_kind[kind] == told.seen).all()


def draw_tables(seed, n, columns, order, k=2, wide=0):
    """Facts of crossed columns of people, and their groups."""
    rng = np.random.default_rng(seed)
    people = rng.integers(0, columns, (n, len(columns)))
    truth = (rng.random(n) < 0.2 + 0.5 * (people[:, 0] == 0)).astype(int)
    if k > 2:
        truth = np.where(rng.random(n) < 0.3, rng.integers(0, k, n), truth)
    tables, low = [], []
    for one in range(len(columns)):
        for other in range(one + 1, len(columns)) if order == 2 else [one]:
            code, size = people[:, one], int(columns[one])
            if other != one:
                code, size = code * columns[other] + people[:, other], size * int(columns[other])
            tables.append((code, size))
            counts = np.zeros((size, k), int)
            np.add.at(counts, (code, truth), 1)
            low.append(counts)
    low = np.concatenate(low)
    return Facts.from_tables(tables, low - wide, low + wide), truth

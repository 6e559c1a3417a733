from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import fpbench.correction.exact.lattice
from fpbench.correction.exact.lattice import UNFINISHED, CountAxis, Group, HalfPlane, search_lattice


def convex(rng, count, kind):
    """Costs of `count` points in a row: convex, and often with flat pieces."""
    if kind == "free":
        return np.zeros(count)
    slopes = {
        "tied": lambda: rng.integers(-2, 3, count - 1).astype(float),
        "random": lambda: rng.normal(0, 2, count - 1),
        # As in a problem: the more the cheaper, then free.
        "leaving": lambda: -np.maximum(rng.integers(-2, 4, count - 1), 0.0),
        "mixed": lambda: -(10.0 ** rng.uniform(-6, 8, count - 1)),
        "powers": lambda: -np.where(rng.random(count - 1) < 0.5, 1.0, 2.0**40),
    }[kind]()
    costs = np.concatenate([[0.0], np.cumsum(np.sort(slopes))])
    return costs - costs.min()


KINDS = ("free", "tied", "random", "leaving", "mixed", "powers")


def box(rng, kinds=KINDS, most=6):
    return tuple(
        CountAxis(int(rng.integers(0, 4)), convex(rng, int(rng.integers(1, most)), str(rng.choice(kinds))))
        for _ in range(2)
    )  # fmt: skip


def half_planes(rng, axes):
    """Some half-planes; now and then an equality, or numbers beyond 64 bits."""
    found = []
    centre = [axis.first + len(axis.costs) // 2 for axis in axes]
    for _ in range(rng.integers(0, 4)):
        a, b = (int(v) for v in rng.integers(-4, 5, 2))
        most = a * centre[0] + b * centre[1] + int(rng.integers(-2, 4))
        scale = 10**25 if rng.random() < 0.15 else 1
        found.append(HalfPlane(a * scale, b * scale, most * scale + scale // 3))
        if rng.random() < 0.2:
            found.append(HalfPlane(-a, -b, -most))
    return found


def points(axes, planes):
    """Every point of a group and its cost."""
    a, b = axes
    return {
        (x, y): float(a.costs[x - a.first] + b.costs[y - b.first])
        for x in range(a.first, a.first + len(a.costs))
        for y in range(b.first, b.first + len(b.costs))
        if all(p.a * x + p.b * y <= p.most for p in planes)
    }


def cheapest_sums(listed):
    """Least cost of every sum of one point a group."""
    sums = {(0, 0): 0.0}
    for own in listed:
        more = {}
        for ((x, y), cost), ((p, q), extra) in product(sums.items(), own.items()):
            key = x + p, y + q
            more[key] = min(more.get(key, np.inf), cost + extra)
        sums = more
    return sums


def check(groups, listed, sizes, prices, unit, least):
    found = search_lattice(groups, sizes, prices, unit)
    if least is None:
        assert found is None
        return
    assert isinstance(found, list)
    assert tuple(np.sum(found, axis=0)) == sizes
    assert all(point in own for point, own in zip(found, listed, strict=True))
    cost = sum(own[point] for point, own in zip(found, listed, strict=True))
    assert cost == pytest.approx(least, rel=1e-9, abs=1e-9 * max(map(abs, (*prices, unit))))


def near(rng, unit):
    """Prices of any size and sign, and zeros."""
    return tuple(float(rng.choice([0.0, 1.0, -1.0, rng.normal()]) * unit) for _ in range(2))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kinds", [("free",), ("tied",), ("leaving",), ("random",), KINDS], ids=str)
def test_the_search_finds_the_cheapest_sum_whatever_the_prices(kinds):
    rng = np.random.default_rng(len(kinds[0]))
    statuses = set()
    for _ in range(60):
        shapes = [box(rng, kinds) for _ in range(rng.integers(2, 5))]
        planes = [half_planes(rng, axes) for axes in shapes]
        listed = [points(*group) for group in zip(shapes, planes, strict=True)]
        sums = cheapest_sums(listed)
        reached = list(sums)
        wanted = [reached[at] for at in rng.permutation(len(reached))[:2]]
        for sizes in (*wanted, (int(rng.integers(0, 20)), int(rng.integers(0, 20)))):
            least = sums.get(sizes)
            statuses.add(least is None)
            unit = float(10.0 ** rng.uniform(-2, 2))
            groups = [Group(*group) for group in zip(shapes, planes, strict=True)]
            check(groups, listed, sizes, near(rng, unit), unit, least)
    assert statuses == {True, False}


@pytest.mark.slow
def test_few_people_in_large_boxes():
    """Sums of points may be beyond the sizes, and must not be taken for others."""
    rng = np.random.default_rng(7)
    for _ in range(120):
        shapes = [
            tuple(CountAxis(0, convex(rng, int(rng.integers(3, 8)), "random")) for _ in range(2))
            for _ in range(3)
        ]
        planes = [half_planes(rng, axes) for axes in shapes]
        listed = [points(*group) for group in zip(shapes, planes, strict=True)]
        sizes = tuple(rng.integers(0, 6, 2).tolist())
        groups = [Group(*group) for group in zip(shapes, planes, strict=True)]
        check(groups, listed, sizes, near(rng, 1.0), 1.0, cheapest_sums(listed).get(sizes))


@pytest.mark.slow
def test_any_prices_give_the_same_optimum():
    rng = np.random.default_rng(2)
    shapes = [box(rng, ("leaving", "tied"), most=9) for _ in range(3)]
    planes = [[HalfPlane(2, -3, 4), HalfPlane(-3, 2, 6)] for _ in shapes]
    listed = [points(*group) for group in zip(shapes, planes, strict=True)]
    sums = cheapest_sums(listed)
    sizes = max(sums, key=lambda size: sums[size])
    assert sums[sizes] > 0
    for prices in product((-30.0, -1.0, 0.0, 0.5, 1.0, 30.0), repeat=2):
        groups = [Group(*group) for group in zip(shapes, planes, strict=True)]
        check(groups, listed, sizes, prices, 1.0, sums[sizes])


def test_one_cost_in_all_is_decided_without_listing_every_point(monkeypatch):
    """Where costs are flat there are too many points to list, and nearly any will do."""
    monkeypatch.setattr(fpbench.correction.exact.lattice, "MOST", 50_000)
    size = 100
    axes = CountAxis(0, np.maximum(49.0 - np.arange(size), 0.0)), CountAxis(0, np.zeros(size))
    planes = [HalfPlane(1, -2, 0), HalfPlane(-3, 1, 0)]
    for prices in ((0.0, 0.0), (-1.0, 0.0), (0.0, 0.0)):
        groups = [Group(axes, planes) for _ in range(3)]
        found = search_lattice(groups, (80, 160), prices, 1.0)
        assert tuple(np.sum(found, axis=0)) == (80, 160)
        assert all(p.a * a + p.b * b <= p.most for a, b in found for p in planes)
        # 49 in every group would cost nothing, but there are 80 in all.
        assert sum(axes[0].costs[a] for a, _ in found) == 3 * 49 - 80


def test_a_search_that_would_take_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(fpbench.correction.exact.lattice, "MOST", 3)
    rng = np.random.default_rng(4)
    answers = []
    for _ in range(60):
        shapes = [box(rng, ("random",)) for _ in range(3)]
        listed = [points(axes, []) for axes in shapes]
        sums = cheapest_sums(listed)
        sizes = list(sums)[int(rng.integers(len(sums)))]
        found = search_lattice([Group(axes, []) for axes in shapes], sizes, (0.0, 0.0), 100.0)
        answers.append(found is UNFINISHED)
        if found is not UNFINISHED:  # then it is right
            cost = sum(own[point] for point, own in zip(found, listed, strict=True))
            assert cost == pytest.approx(sums[sizes])
    assert True in answers


def test_groups_without_a_point_have_no_solution():
    free = CountAxis(0, np.zeros(5)), CountAxis(0, np.zeros(5))
    nowhere = Group(free, [HalfPlane(1, 1, -1)])
    assert search_lattice([Group(free, []), nowhere], (3, 3), (0.0, 0.0), 1.0) is None
    assert nowhere.price((0.0, 0.0)) == np.inf
    # 2 a - 2 b = 1 has no whole solution, though it has others.
    odd = Group(free, [HalfPlane(2, -2, 1), HalfPlane(-2, 2, -1)])
    assert search_lattice([Group(free, []), odd], (3, 3), (0.0, 0.0), 1.0) is None


def test_a_group_lists_the_points_of_small_excess():
    rng = np.random.default_rng(5)
    for _ in range(150):
        axes = box(rng)
        planes = half_planes(rng, axes)
        group, listed = Group(axes, planes), points(axes, planes)
        prices = near(rng, 1.0)
        net = {p: c - prices[0] * p[0] - prices[1] * p[1] for p, c in listed.items()}
        least = group.price(prices)
        if not net:
            assert least == np.inf
            continue
        scale = max(map(abs, net.values())) + 1
        assert least == pytest.approx(min(net.values()), abs=1e-9 * scale)
        assert net[group.best()] == pytest.approx(least, abs=1e-9 * scale)
        assert group.span >= max(net.values()) - least - 1e-9 * scale
        room = float(rng.choice([0.0, 0.5, 3.0, 1e9]))
        found = group.points(room)
        assert set(zip(found.a.tolist(), found.b.tolist(), strict=True)) <= set(net)
        inside = {p for p, c in net.items() if c - least <= room - 1e-9 * scale}
        assert inside <= set(zip(found.a.tolist(), found.b.tolist(), strict=True))
        excess = [net[p] - least for p in zip(found.a.tolist(), found.b.tolist(), strict=True)]
        np.testing.assert_allclose(found.excess, excess, atol=1e-9 * scale)
        np.testing.assert_allclose(group.excess(found.a, found.b), excess, atol=1e-9 * scale)
        assert group.excess(np.array([axes[0].first - 1]), np.array([0]))[0] == np.inf


def test_a_turned_group_has_the_same_points_the_other_way_round():
    rng = np.random.default_rng(6)
    for _ in range(50):
        axes = box(rng)
        planes = half_planes(rng, axes)
        group, prices = Group(axes, planes), near(rng, 1.0)
        turned = group.turned()
        least = group.price(prices)
        assert turned.price(prices[::-1]) == pytest.approx(least, rel=1e-12, abs=1e-9)
        if least < np.inf:
            found, other = (one.points(2 * one.span + 1) for one in (group, turned))
            straight = set(zip(found.a.tolist(), found.b.tolist(), strict=True))
            assert straight == set(zip(other.b.tolist(), other.a.tolist(), strict=True))
            assert straight == set(points(axes, planes))

"""Small tables whose groups, features and labels depend on each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from fpbench import Sample

# How long an example takes is the machine's affair, and no law.
settings.register_profile("laws", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("laws")


def people(n: int = 400, k: int = 2, seed: int = 0) -> Sample:
    """People whose group shows in a number and in a category, and who get labels accordingly."""
    rng = np.random.default_rng(seed)
    sensitive = rng.integers(0, k, n).astype(np.int8)
    skill = rng.normal(size=n)
    income = skill + 1.5 * sensitive + rng.normal(size=n)
    job = np.where(rng.random(n) < 0.7, sensitive, rng.integers(0, k, n))
    categories = [f"job {code}" for code in range(k)]
    features = pd.DataFrame(
        {
            "skill": skill,
            "income": 1000 * income,
            "job": pd.Categorical.from_codes(job, categories=categories),
        }
    )
    labels = (skill + sensitive + rng.normal(size=n) > k / 2).astype(np.int8)
    names = tuple(f"group {code}" for code in range(k))
    return Sample(names, features=features, labels=labels, sensitive=sensitive)


@pytest.fixture
def make_people() -> Callable[..., Sample]:
    """Makes people: n, number of groups, seed."""
    return people


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator, seeded."""
    return np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _global_randomness_untouched():
    """No component may draw from numpy's global generator."""
    before = np.random.get_state()[1].copy()
    yield
    assert (np.random.get_state()[1] == before).all()

"""Randomised response: people randomise their groups themselves, before anybody counts them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Guarantee, InputError, Mechanism
from fpbench.builtin.mechanisms._noise import check_epsilons, check_integers
from fpbench.privacy import Neighbours, Sensitivity


class RandomisedResponse(Mechanism):
    """Estimates the counts of K groups from groups that people randomised: local privacy.

    A person reports the true group with probability e^epsilon / (e^epsilon + K - 1), else one of
    the others, all equally likely. Whatever the group, no report is more than e^epsilon times
    likelier than with another: nobody has to be trusted, not even a curator. Answers are the
    unbiased estimates (reports - n q) / (p - q), p the probability of the true group and q of each
    other; they sum to the number n of people, and may be negative.

    The last axis of the counts is the groups. The number of people is public, so only the relation
    `attribute` is guaranteed. A person who is in c histograms (L1 sensitivity 2 c) reports in each
    with epsilon / c.

    Notes
    -----
    No mechanism of this epsilon lets one guess a person's group better, if all groups are equally
    likely before (docs/limits.md). The standard deviation of an estimate is about
    sqrt(n (e^epsilon + K - 2)) / (e^epsilon - 1), for a group of few people; that of a curator's
    Laplace noise does not grow with n.
    """

    name = "randomised-response"
    summary = "people randomise their own groups: local differential privacy"
    reference = (
        "Warner, Randomized Response, JASA 1965; Kairouz, Bonawitz & Ramage, Discrete Distribution "
        "Estimation under Local Privacy, ICML 2016"
    )

    continuous = True

    def guarantee(self, epsilon: float, neighbours: Neighbours) -> Guarantee:
        """The pure guarantee for a change of a person's group.

        Raises InputError for the relation `add-remove`.
        """
        if neighbours != "attribute":
            raise InputError(
                f"mechanism {self.name!r} hides people's groups, not who takes part: use "
                'neighbours = "attribute"'
            )
        return super().guarantee(epsilon, neighbours)

    def release(
        self,
        counts: NDArray[np.int64],
        sensitivity: Sensitivity,
        epsilon: float | NDArray[np.float64],
        rng: np.random.Generator,
        upper: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Estimated counts (..., K), after each person's report.

        Raises InputError if there are no two groups, a count is negative or no whole number, the
        sensitivity is not that of a change of group, or epsilon differs between groups.
        """
        counts, epsilon = check_integers(counts, "counts"), check_epsilons(epsilon)
        if sensitivity.l1 < 2:
            self.guarantee(1.0, "add-remove")
        if counts.shape[-1:] in ((), (1,)) or epsilon.shape[-1:] not in ((), (1,)):
            raise InputError(
                f"mechanism {self.name!r} needs counts (..., K) of all K groups, two or more, and "
                f"one epsilon for all of them, not {counts.shape} and {epsilon.shape}"
            )
        if (counts < 0).any():
            raise InputError(f"mechanism {self.name!r}: a count is negative")
        k = counts.shape[-1]
        price = np.atleast_1d(epsilon * 2 / sensitivity.l1)
        true = np.broadcast_to(counts, np.broadcast_shapes(counts.shape, price.shape))
        # The true group with probability `kept`, else any of the K groups, the true one included.
        kept = -np.expm1(-price) / (1 + (k - 1) * np.exp(-price))
        people = true.sum(axis=-1, keepdims=True)
        reports = rng.binomial(true, np.broadcast_to(kept, true.shape))
        others = people[..., 0] - reports.sum(axis=-1)
        reports = reports + rng.multinomial(others, np.full(k, 1 / k))
        return np.asarray((reports - people * (1 - kept) / k) / kept)

    def find_noise_law(
        self, sensitivity: Sensitivity, epsilon: float, upper: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """None: InputError, as the noise depends on the counts and on other groups' counts."""
        raise InputError(
            f"mechanism {self.name!r}: its noise depends on the true counts, so that answers are "
            "no facts of known noise; use another mechanism"
        )

"""The disclosure of a model's trees: leaves with numbers of training people."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fpbench import Claim, Context, InputError
from fpbench.builtin.disclosures._counts import CountDisclosure
from fpbench.models import find_tree_facts
from fpbench.privacy import limit_private_nats


class Structure(CountDisclosure):
    """The trees of a model, with the numbers of training people in their leaves.

    A fitted tree or forest of scikit-learn has these numbers, and publishing the model publishes
    them. If the people's group was one of its features (learner `group-aware`), the numbers are
    counts of groups in sets of people, which the corrector `posterior` takes. The adversary
    knows labels and all features but the group. Without the group among the features the numbers
    reveal nothing about groups.

    For a random forest with bootstrap samples they are bounds and measurements; for a private tree,
    noisy counts.
    """

    name = "structure"
    summary = "the model's trees with the numbers of people in their leaves"
    reference = (
        "Ferry, Fukasawa, Pascal, Vidal. Trained Random Forests Completely Reveal your Dataset. "
        "ICML 2024"
    )
    shows = frozenset({"structure"})

    @property
    def needs_model(self) -> bool:
        """True: it reads the model's trees."""
        return True

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Read the model's trees.

        Raises InputError if the model was not trained on these people, or has no trees with groups.
        """
        people, model = context.target, context.model
        if not context.trained_on_target:
            raise InputError(
                f"disclosure {self.name!r} is about the model's training people: "
                'leave out [split] target = "held-out"'
            )
        trees: Any = getattr(model, "published_trees", ())
        add_group: Any = getattr(model, "add_group", None)
        if not trees or add_group is None:
            raise InputError(f"disclosure {self.name!r}: the model has no trees with groups")

        def take_group(code: int) -> Any:
            return add_group(people.features, np.full(len(people), code))

        facts = find_tree_facts(trees, take_group, len(people.groups), people.labels)
        # The choice of splits gives information too; without a guarantee nothing bounds it.
        nats = len(people) * math.log(len(people.groups))
        guarantee = getattr(model, "guarantee", None)
        if guarantee is None:
            return Claim(None, self.name, (facts,), nats=nats)
        nats = min(nats, limit_private_nats(guarantee, len(people)))
        return Claim(None, self.name, (facts,), {}, guarantee, "simulation", nats)

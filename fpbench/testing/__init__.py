"""What third parties test their plugins with: the laws of every kind, and attacks on privacy.

`fpbench check PACKAGE_OR_PATH` runs the laws on the command line, `pytest --fpbench` in a test
suite, and `checks` gives them one by one.
"""

from fpbench.testing.attacks import (
    PAIRS,
    Attack,
    ReleaseFunction,
    attack_mechanism,
    check_mechanism,
    epsilon_lower_bound,
)
from fpbench.testing.laws import LAWS, Check, Law, Outcome, Verdict
from fpbench.testing.targets import check_component, checks

__all__ = [
    "LAWS",
    "PAIRS",
    "Attack",
    "Check",
    "Law",
    "Outcome",
    "ReleaseFunction",
    "Verdict",
    "attack_mechanism",
    "check_component",
    "check_mechanism",
    "checks",
    "epsilon_lower_bound",
]

"""What is imported before it is asked for: nothing that a stranger's matrix could choose."""

import subprocess
import sys

import pytest

from fpbench.components.spec import Spec
from fpbench.execution.engines.requirements import list_modules
from fpbench.matrix.step import Step


def step(**parameters):
    spec = Spec("adversary", "a2", parameters)
    return Step("key", "stream", "guess", spec, ())


def test_named_classifiers_and_nothing_else():
    steps = [
        step(family="random-forest", trials=3),
        step(base="decision-tree"),
        step(family="os:system"),
        step(family="sklearn.svm:SVC"),
        Step("key", "stream", "score", None, ()),
    ]
    assert list_modules(steps) == ("sklearn.ensemble", "sklearn.tree")


@pytest.mark.slow
def test_warming_imports_them():
    program = (
        "import sys; from fpbench.execution.engines.requirements import warm\n"
        "assert 'pandas' not in sys.modules; warm(('sklearn.tree',))\n"
        "assert {'pandas', 'sklearn.tree'} <= set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

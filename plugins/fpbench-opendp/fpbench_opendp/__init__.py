"""Mechanisms of OpenDP as mechanisms of fpbench."""

from fpbench import hookimpl
from fpbench.plugin import Lazy


@hookimpl
def fpbench_mechanisms() -> list[Lazy]:
    """Mechanisms that add noise, and one that chooses."""
    return [
        Lazy("opendp-laplace", "fpbench_opendp.laplace:Laplace"),
        Lazy("opendp-discrete-laplace", "fpbench_opendp.laplace:DiscreteLaplace"),
        Lazy("opendp-geometric", "fpbench_opendp.laplace:Geometric"),
        Lazy("opendp-gaussian", "fpbench_opendp.gaussian:Gaussian"),
        Lazy("opendp-discrete-gaussian", "fpbench_opendp.gaussian:DiscreteGaussian"),
        Lazy("opendp-permute-and-flip", "fpbench_opendp.permute_and_flip:PermuteAndFlip"),
    ]

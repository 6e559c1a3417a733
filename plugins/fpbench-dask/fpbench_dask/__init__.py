"""The workers of a dask cluster as an engine of fpbench."""

from fpbench import hookimpl
from fpbench.plugin import Lazy


@hookimpl
def fpbench_engines() -> list[Lazy]:
    """One engine."""
    return [Lazy("dask", "fpbench_dask.engine:DaskEngine")]

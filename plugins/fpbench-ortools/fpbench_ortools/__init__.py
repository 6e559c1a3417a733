"""CP-SAT, the solver of OR-Tools, as a corrector of fpbench."""

from fpbench import hookimpl
from fpbench.plugin import Lazy


@hookimpl
def fpbench_correctors() -> list[Lazy]:
    """One corrector."""
    return [Lazy("cp-sat", "fpbench_ortools.cp_sat:CPSat")]

"""A curator's answers as facts about people's groups: what its auditor learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.claims.count_laws import LAWS, CountLaws
from fpbench.claims.set_counts import Facts
from fpbench.components.auditor import HistogramSource
from fpbench.components.guarantee import COUNT_SENSITIVITY, Neighbours
from fpbench.components.mechanism import Mechanism
from fpbench.data.sample import Codes


@dataclass(frozen=True, eq=False)
class _Answer:
    """One histogram of C disjoint cells."""

    cells: NDArray[np.signedinteger[Any]]
    """(n,) -1 for none."""
    counts: NDArray[np.float64]
    """(C, K)."""
    laws: CountLaws
    """Of the C cells' noise."""
    repetition: int


class RecordingCurator:
    """Passes queries on to a curator, and keeps its answers as facts about its people.

    The cells of a query and the distribution of the noise are public, so a reader of the answers
    has noisy counts of the groups in sets of people. A mechanism without noise
    (`Mechanism.find_exact_law`) gives exact counts.

    Parameters
    ----------
    curator
        Answers the queries, and pays for them.

    Examples
    --------
    >>> import fpbench
    >>> from fpbench.privacy import Curator, RecordingCurator
    >>> curator = RecordingCurator(Curator(["f", "m", "m", "f"], rng=0))
    >>> laplace = fpbench.component("mechanism", "discrete-laplace")
    >>> answer = curator.histogram([0, 0, 1, 1], 2, epsilon=0.5, mechanism=laplace)
    >>> len(curator.facts())
    2
    """

    def __init__(self, curator: HistogramSource) -> None:
        if not callable(getattr(curator, "histogram", None)) or isinstance(curator, type):
            raise InputError(f"curator must answer histograms, not {show_value(curator)}")
        self._curator = curator
        self._answers: list[_Answer] = []

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the K groups."""
        return self._curator.groups

    @property
    def people(self) -> int:
        """Number of people n."""
        return self._curator.people

    @property
    def neighbours(self) -> Neighbours:
        """The relation that epsilon is measured by."""
        return self._curator.neighbours

    @property
    def remaining(self) -> Any:
        """The rest of the budget; None if the curator does not reveal it."""
        return getattr(self._curator, "remaining", None)

    @check_arguments
    def histogram(
        self,
        cells: Codes | ArrayLike,
        n_cells: int,
        *,
        epsilon: ArrayLike,
        mechanism: Mechanism,
        repetitions: int = 1,
    ) -> NDArray[np.float64]:
        """Noisy numbers (..., R, C, K) of people of every group in every cell.

        Parameters and errors are those of `fpbench.privacy.HistogramSource.histogram`.
        """
        codes = np.array(cells)
        answers = self._curator.histogram(
            codes, n_cells, epsilon=epsilon, mechanism=mechanism, repetitions=repetitions
        )
        if codes.dtype.kind != "i":
            codes = codes.astype(np.int64)
        sizes = np.bincount(codes[codes >= 0], minlength=n_cells)
        sensitivity = COUNT_SENSITIVITY[self.neighbours]
        parameters = np.asarray(epsilon, dtype=np.float64).ravel().tolist()
        for own, counts in zip(
            parameters, answers.reshape(len(parameters), *answers.shape[-3:]), strict=True
        ):
            law, width = mechanism.find_exact_law(sensitivity, own, sizes)
            laws = CountLaws.of((width > 0) * LAWS.index(law), width, len(self.groups))
            self._answers += [_Answer(codes, one, laws, n) for n, one in enumerate(counts)]
        return answers

    @check_arguments
    def facts(self, repetition: int | None = None) -> Facts:
        """The facts that the answers so far tell.

        Parameters
        ----------
        repetition
            Which answer of a repeated query to use, from 0; all by default.

        Raises
        ------
        ContradictionError
            If answers without noise contradict each other.
        """
        answers = [a for a in self._answers if repetition in (None, a.repetition)]
        if not answers:
            nothing = np.zeros((self.people, 0), np.bool_), np.zeros((0, len(self.groups)))
            return Facts.from_counts(*nothing)
        return Facts.from_tables(
            [(answer.cells, len(answer.counts)) for answer in answers],
            np.concatenate([answer.counts for answer in answers]),
            laws=CountLaws.join([answer.laws for answer in answers]),
            names=[
                f"answer {number}, cell {cell}"
                for number, answer in enumerate(answers)
                for cell in range(len(answer.counts))
            ],
        )

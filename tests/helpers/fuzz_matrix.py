"""Feed the reader and the planner of matrices what atheris makes of ours, guided by coverage.

Not a test: `pip install atheris` (Python 3.11 to 3.13), then

    python tests/fuzz_matrix.py [-max_total_time=600] [options of libFuzzer]

Whatever is not a plan must be a `MatrixError` of one line that names the file.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["fpbench", "tomllib"]):
    from fpbench import DataHome, MatrixError, discover
    from fpbench.matrix.matrix import read
    from fpbench.matrix.plan import make_plan

ROOT = Path(__file__).parents[2]
PLACE = Path(tempfile.mkdtemp(prefix="fpbench-fuzz-"))
FILE = PLACE / "m.toml"
WORDS = ("use", "label", "sweep", "linspace", "geomspace", "seeds", "split", "exclude", "profile",
         "dataset", "learner", "disclosure", "adversary", "corrector", "mechanism", "policy",
         "auditor", "expect", "check", "base", "family", "[[", "]]", " = ", '"""')  # fmt: skip


def one(content: bytes) -> None:
    """Plan what stands in a file."""
    FILE.write_bytes(content)
    try:
        make_plan(read(FILE, max_cells=200), discover(), DataHome((PLACE,)))
    except MatrixError as error:
        said = str(error)
        if "\n" in said or not said.startswith(str(FILE)):
            raise AssertionError(said) from error


def main() -> None:
    """Fuzz until libFuzzer has enough."""
    corpus, words = PLACE / "corpus", PLACE / "words"
    corpus.mkdir()
    for file in ROOT.glob("benchmarks/*.toml"):
        (corpus / file.name).write_bytes(file.read_bytes())
    words.write_text("".join(f'"{word}"\n'.replace('"""', '\\"\\"\\"') for word in WORDS[:-1]))
    atheris.Setup([*sys.argv, f"-dict={words}", str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

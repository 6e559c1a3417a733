"""A submission, keys to sign it with, and what a forger does to it."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from fpbench.matrix.limits import NO_LIMITS
from fpbench.store.store import Store
from fpbench.testing.submissions.checking import CheckOptions

HOSTILE = "<img src=x onerror=alert(1)>"
MATRIX = {
    "title": f"Small </title><script>alert(2)</script>{HOSTILE}",
    "seeds": 2,
    "dataset": [{"use": "census-synthetic", "rows": 300}],
    "learner": [{"use": "decision-tree", "label": HOSTILE}],
    "disclosure": [{"use": "published", "metric": "statistical-parity"}],
    "adversary": [{"use": "majority"}, {"use": "prior", "label": "the best of all"}],
    "corrector": [{"use": "posterior"}],
}
QUICK = CheckOptions(sample=1, seed=0, limits=NO_LIMITS)
"""One cell, in this process: what limits do to a step has tests of its own."""
UNRUN = replace(QUICK, sample=0)


def copy(submission: Path, target: Path) -> Path:
    """A submission that may be changed."""
    return Path(shutil.copytree(submission, target))


def make_key(folder: Path, name: str = "key") -> tuple[Path, str]:
    """A private SSH key without a passphrase, and its public key."""
    key = folder / name
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True
    )
    return key, " ".join(key.with_suffix(".pub").read_text().split()[:2])


def forge(run: Path, **added: float) -> None:
    """Add to what a run says that it measured, in every cell."""
    with Store(run, create=True) as store:
        for record in list(store.records()):
            changed = {name: record.measures[name] + more for name, more in added.items()}
            measures = {**record.measures, **changed}
            store.add(record.session, record.key, record.status, record.seconds, measures)
    (run / "store.lock").unlink()

"""A matrix of the toys of tests/plugins, and what its runs have in common."""

ATTACK = {
    "dataset": [{"use": "flock"}],
    "learner": [{"use": "parrot"}],
    "disclosure": [{"use": "oracle"}],
    "adversary": [{"use": "coin"}],
    "corrector": [{"use": "flip"}],
}
PARROTS = [{"use": "parrot", "number": {"sweep": [0, 1]}}]
COUNTER = [{"use": "counter", "mechanism": {"use": "hiss"}}]


def timeless(run):
    """Rows without what differs from one time to the next."""
    times = {"seconds", "correct_seconds"}
    return [{name: v for name, v in row.items() if name not in times} for row in run.rows()]

"""Matrices of the runs that are reported on."""

HOSTILE = "<img src=x onerror=alert(1)>$x_1$"
REAL = {
    "title": "Small </script><script>alert(2)</script>",
    "seeds": 3,
    "dataset": [{"use": "census-synthetic", "rows": 1200}],
    "learner": [
        {"use": "plain"},
        {
            "use": "exponentiated-gradient",
            "metric": "statistical-parity",
            "max_iter": 5,  # each is a second
            "tolerance": {"sweep": [0.0, 0.05, 0.1]},
        },
    ],
    # A name that every object of a browser has.
    "disclosure": [{"use": "published", "metric": "statistical-parity", "label": "constructor"}],
    "adversary": [
        {"use": "a1", "label": HOSTILE, "family": "decision-tree"},
        {"use": "a2", "family": "decision-tree"},
    ],
    "corrector": [{"use": "none"}, {"use": "exact"}],
}
AUDITS = {
    "title": "Audits",
    "seeds": 2,
    "dataset": [{"use": "census-synthetic", "rows": 600}],
    "learner": [{"use": "decision-tree"}],
    "auditor": [
        {
            "use": "pafer", "mode": "reference", "repetitions": 5, "resamples": 0,
            "epsilon": {"sweep": [0.1, 1.0]},
        }
    ],
    "mechanism": [{"use": "laplace"}, {"use": "gaussian"}],
    "policy": [{"use": "clip"}, {"use": "project"}],
}  # fmt: skip
TOYS = {
    "title": "Toys",
    "seeds": 2,
    "dataset": [{"use": "flock"}],
    "learner": [{"use": "parrot"}, {"use": "parrot", "label": "biter", "fails": "raises"}],
    "disclosure": [{"use": "oracle"}],
    "adversary": [{"use": "coin"}, {"use": "peek"}],
    "corrector": [{"use": "flip"}],
}

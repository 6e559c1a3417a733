"""Accuracy and seconds of diffprivlib's tree, as JSON; run by private_tree.py in its own venv.

    python diffprivlib_tree.py DATA.npz DEPTH SEEDS EPSILON...

The archive holds train, test, low, high of each encoding, train_labels and test_labels.
"""

import json
import statistics
import sys
import time

import numpy as np
from diffprivlib.models import DecisionTreeClassifier


def main() -> None:
    path, depth, seeds, *epsilons = sys.argv[1:]
    data, results = np.load(path), {}
    for encoding in ("one-hot", "ordinal"):
        train, test, low, high = (
            data[f"{encoding}_{name}"].astype(np.float64)
            for name in ("train", "test", "low", "high")
        )
        for epsilon in epsilons:
            right, seconds = [], []
            for seed in range(int(seeds)):
                tree = DecisionTreeClassifier(
                    int(depth), epsilon=float(epsilon), bounds=(low, high), classes=[0, 1],
                    random_state=seed,
                )  # fmt: skip
                started = time.process_time()
                tree.fit(train, data["train_labels"])
                seconds.append(time.process_time() - started)
                right.append(float((tree.predict(test) == data["test_labels"]).mean()))
            results[f"{encoding} {epsilon}"] = [right, statistics.median(seconds)]
    print(json.dumps(results))


if __name__ == "__main__":
    main()

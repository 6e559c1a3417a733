"""Attack a forest with DRAFT or DRAFT-DP, as JSON; run by draft.py in an environment of its own.

    python draft_worker.py FOLDER noisy|exact PEOPLE COLUMNS TREES SEED SECONDS [EPSILON DEPTH]

FOLDER is a copy of the authors' repository. The attack knows everything of COMPAS's people but the
COLUMNS (numbers, with commas) of one attribute. The authors' code does not know labels; here it is
told them, by one more constraint a person, as ours knows them.
"""

import contextlib
import io
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

LABEL = "recidivate-within-two-years:1"
KNOWN = {  # the place where labels are added, and the constraint
    "exact": ("model.Add( x_vars[k][i] == X_known[k][i] )", "z_vars[k][LABELS[k]] == 1"),
    "noisy": ("model.Add( x[k][i] == X_known[k][i] )", "z[k][LABELS[k]] == 1"),
}


def load(file, kind, labels):
    """The authors' module, whose attack on attributes is told labels."""
    code, (line, constraint) = Path(file).read_text(), KNOWN[kind]
    if line not in code:
        raise SystemExit(f"{file} is not the code that this was written for")
    code = code.replace(line, f"{line}; model.Add({constraint})")
    space = {"LABELS": labels, "__name__": "attack"}
    exec(compile(code, file, "exec"), space)
    return space


def main():
    folder, kind, people, columns, trees, seed, seconds, *private = sys.argv[1:]
    sys.path.insert(0, folder)
    frame = pd.read_csv(Path(folder) / "data" / "compas.csv")
    people, trees, seed = int(people), int(trees), int(seed)
    rows = frame.iloc[:people] if kind == "noisy" else frame.sample(people, random_state=seed + 1)
    labels = rows[LABEL].to_numpy()
    features = rows.drop(columns=LABEL).reset_index(drop=True)
    secret = [int(c) for c in columns.split(",")]
    known = [c for c in range(features.shape[1]) if c not in secret]
    with contextlib.redirect_stdout(io.StringIO()):
        from datasets_infos import datasets_ohe_vectors

        hot = datasets_ohe_vectors["compas"]
        if kind == "noisy":
            from DP_RF import DP_RF

            epsilon, depth = float(private[0]), int(private[1])
            forest = DP_RF("", "compas", people, trees, hot, depth, seed, seed_noise=seed)
            forest.fit(features, pd.Series(labels))
            forest.add_noise(epsilon)
            attack = load(f"{folder}/DP_RF_solver.py", kind, labels)["DP_RF_solver"]
            attack = attack(forest, epsilon)
            began = time.perf_counter()
            found = attack.fit(
                people,
                seed,
                float(seconds),
                1,
                0,
                1,
                X_known=features.to_numpy(),
                known_attributes=known,
            )
        else:
            from sklearn.ensemble import RandomForestClassifier

            forest = RandomForestClassifier(trees, random_state=seed).fit(features, labels)
            attack = load(f"{folder}/DRAFT.py", kind, labels)["DRAFT"](
                forest, one_hot_encoded_groups=hot
            )
            began = time.perf_counter()
            found = attack.perform_benchmark_partial_attributes(
                n_threads=1,
                time_out=int(seconds),
                verbosity=0,
                X_known=features.to_numpy(),
                known_attributes=known,
            )
        taken = time.perf_counter() - began
    solved = found["status"] in ("OPTIMAL", "FEASIBLE")
    nodes = [estimator.tree_ for estimator in forest.estimators_]
    published = [
        {
            "feature": tree.feature.tolist(),
            "threshold": tree.threshold.tolist(),
            "left": tree.children_left.tolist(),
            "right": tree.children_right.tolist(),
            "counts": (tree.value[:, 0] if kind == "noisy" else tree.n_node_samples).tolist(),
        }
        for tree in nodes
    ]
    print(
        json.dumps(
            {
                "features": features.to_numpy().tolist(),
                "labels": labels.tolist(),
                "trees": published,
                "status": found["status"],
                "seconds": taken,
                "rows": np.asarray(found["reconstructed_data"]).tolist() if solved else None,
            }
        )
    )


if __name__ == "__main__":
    main()

"""The command `attack`, as a user meets it."""

import pandas as pd
from commands import bad, fine
from reports import make_people

import fpbench


def test_predictions_in_a_file_are_attacked_as_in_python(command, tmp_path):
    X, predictions, groups = make_people(240)
    labels = (X["a"] == "1").astype(int)
    folder = tmp_path / "work"
    people = X.assign(sex=groups, hired=predictions, good=labels)
    people.to_csv(folder / "people.csv", index=False)
    own = ("attack", "people.csv", "--group", "sex", "--prediction", "hired")
    told = fine(command(*own, "--label", "good", "--seeds", 2, "--known", 0.4)).stdout
    read = pd.read_csv(folder / "people.csv", dtype={"sex": object})
    expected = fpbench.attack(read["hired"].to_numpy(), read[X.columns], read["good"], read["sex"],
                              known=0.4, seeds=2)  # fmt: skip
    assert told.split() == str(expected).split()
    assert told.startswith("Your model adds ")
    people.assign(hired=range(len(X))).to_csv(folder / "scores.csv", index=False)
    bad(command(own[0], "scores.csv", *own[2:]), "'hired': 240 numbers, not two", "--threshold")
    bad(
        command(*own, "--label", "good", "--threshold", "nan"),
        "--threshold must be a number, not nan",
    )
    bad(command(*own), "people.csv: no column 'label'", "--label")
    bad(command(*own, "--label", "good", "--known", 2), "known: must be a share")
    bad(command(*own, "--label", "good", "--adversary", "a22"), "'a22'; did you mean 'a2'?")

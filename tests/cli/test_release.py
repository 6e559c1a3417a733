"""The command `release`, as a user meets it."""

import json

import pytest
from commands import bad, fine
from reports import make_people

from fpbench import FairnessReport


@pytest.fixture
def work(tmp_path, command):
    folder = tmp_path / "work"
    X, predictions, groups = make_people(240)
    X.assign(sex=groups, hired=predictions).to_csv(folder / "people.csv", index=False)
    return folder


OWN = ("people.csv", "--group", "sex", "--prediction", "hired")


@pytest.mark.slow
def test_a_table_is_made_with_a_certificate_that_can_be_recounted(work, command):
    options = (*OWN, "-o", "table.csv", "--order", 2, "--epsilon", 1)
    told = fine(command("release", *options, "--certificate", "c.json")).stdout
    assert told.startswith("May be published: ")
    assert FairnessReport.from_file(work / "table.csv").stated.guarantee.epsilon == 1
    checked = fine(command("release", *OWN, "-o", "table.csv", "--check", "c.json")).stdout
    assert checked.count("right: ") == len(checked.splitlines()) == 7
    certificate = json.loads((work / "c.json").read_text())
    certificate["attack"]["measures"]["leak"] += 0.1
    (work / "c.json").write_text(json.dumps(certificate))
    checked = fine(command("release", *OWN, "-o", "table.csv", "--check", "c.json"), 1).stdout
    assert "WRONG: the leak is the same" in checked


@pytest.mark.slow
def test_nothing_is_written_where_nothing_passes(work, command):
    options = ("-o", "table.csv", "--epsilon", 1000, "--order", 2, "--max-leak", "0%")
    told = fine(command("release", *OWN, *options), 3).stdout
    assert told.startswith("Must not be published: ")
    assert not (work / "table.csv").exists()


def test_a_second_table_is_fitted_to_the_first(work, command):
    options = (*OWN, "--by", "a", "--by", "b", "--ledger", "l.db", "--budget", 2, "--max-leak", 0.5)
    fine(command("release", *options, "--horizon", 2, "-o", "1.csv"))
    more = ("--horizon", 1, "--earlier", "1.csv", "-o", "2.csv", "--certificate", "c.json")
    told = fine(command("release", *options, *more)).stdout
    assert "Read with 1 earlier table," in told
    tables = [FairnessReport.from_file(work / name) for name in ("1.csv", "2.csv")]
    assert [one.stated.guarantee.epsilon for one in tables] == [1, 1]
    check = ("release", *OWN, "-o", "2.csv", "--check", "c.json")
    fine(command(*check, "--earlier", "1.csv"))
    bad(command(*check), "c.json", "--earlier")
    bad(command("release", *OWN, "--epsilon", 1, "--earlier", "1.csv", "-o", "1.csv"), "read here")
    (work / "1.csv").write_text(
        "group,metric,value,n\nf,selection-rate,0.5,8\nm,selection-rate,0.5,8"
    )
    bad(
        command("release", *OWN, "--epsilon", 1, "--earlier", "1.csv", "-o", "3.csv"),
        "1.csv: has no",
    )


def test_bad_input_is_named(work, command):
    bad(command("release", "people.csv", "-o", "t.csv"), "people.csv", "prediction")
    bad(command("release", *OWN, "-o", "people.csv"), "people.csv is read here")
    bad(command("release", *OWN, "-o", "t.csv", "--by", "jobb"), "jobb")
    bad(command("release", *OWN, "-o", "t.csv", "--check", "people.csv"), "no certificate")
    bad(command("release", *OWN, "-o", "t.csv", "--epsilon", 0), "epsilon")
    bad(command("release", *OWN, "-o", "t.csv", "--ledger", "l.db"), "--budget")
    bad(command("release", *OWN, "-o", "t.csv", "--ledger", "l.db", "--budget", 2), "--epsilon")
    bad(command("release", *OWN, "-o", "t.csv", "--horizon", 2), "--ledger")
    bad(command("release", *OWN, "-o", "t.csv", "--ledger", "people.csv", "--budget", 2), "ledger")

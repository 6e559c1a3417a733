"""Reading a matrix: what it means, and one clear error for whatever it may not say."""

import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.base.errors import MatrixError
from fpbench.base.validation import validate
from fpbench.components.catalog import discover
from fpbench.matrix.matrix import read

GOOD = """
title = "toy"
seeds = 2
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
number = { sweep = [1, 2] }
[[disclosure]]
use = "oracle"
[[adversary]]
use = "coin"
[[corrector]]
use = "flip"
[[corrector]]
use = "none"
"""


def labels(matrix, kind):
    return [choice.label for choice in matrix.axes[kind]]


def parameters(matrix, kind):
    return [choice.parameters for choice in matrix.axes[kind]]


def with_learner(line):
    return read(tomllib.loads(GOOD.replace("number = { sweep = [1, 2] }", line)))


def test_a_matrix_says_what_is_crossed():
    matrix = read(tomllib.loads(GOOD))
    assert matrix.title == "toy"
    assert matrix.seeds == (0, 1)
    assert labels(matrix, "learner") == ["parrot number=1", "parrot number=2"]
    assert labels(matrix, "corrector") == ["flip", "none"]
    assert matrix.axes["auditor"] == ()
    assert matrix.rank_by == "with_accuracy"


def test_seeds_may_be_listed():
    assert read(tomllib.loads(GOOD.replace("seeds = 2", "seeds = [7, 3]"))).seeds == (7, 3)


def test_sweeps_multiply():
    matrix = with_learner('a = { sweep = ["x", "y"] }\nb = { sweep = [1, 2] }\nc = 3')
    assert labels(matrix, "learner") == [
        "parrot x b=1",
        "parrot x b=2",
        "parrot y b=1",
        "parrot y b=2",
    ]
    assert parameters(matrix, "learner")[3] == {"a": "y", "b": 2, "c": 3}


def test_a_label_names_the_variants_of_a_sweep():
    assert labels(with_learner('label = "mine"\na = { sweep = [1, 2] }'), "learner") == [
        "mine a=1",
        "mine a=2",
    ]


@pytest.mark.parametrize(
    ("sweep", "values"),
    [
        ("linspace = [0, 0.3, 4]", [0.0, 0.1, 0.2, 0.3]),
        ("linspace = [1, 0, 2]", [1.0, 0.0]),
        ("linspace = [0.5, 1, 1]", [0.5]),
        ("geomspace = [0.001, 1, 4]", [0.001, 0.01, 0.1, 1.0]),
    ],
)
def test_spaces_give_short_decimals(sweep, values):
    matrix = with_learner(f"t = {{ {sweep} }}")
    assert [said["t"] for said in parameters(matrix, "learner")] == values


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 9))
def test_linspace_has_its_ends_and_its_number(low, high, count):
    line = f"t = {{ linspace = [{low!r}, {high!r}, {count}] }}"
    try:
        found = [said["t"] for said in parameters(with_learner(line), "learner")]
    except MatrixError as error:  # equal ends give equal labels
        assert "label" in str(error)  # noqa: PT017
        assert abs(low - high) < 1e-9
        return
    assert len(found) == count
    assert found[0] == pytest.approx(low, rel=1e-11, abs=1e-300)
    if count > 1:
        assert found[-1] == pytest.approx(high, rel=1e-11, abs=1e-11)


def test_two_tables_that_differ_in_a_label_are_two_choices():
    text = GOOD + '[[corrector]]\nuse = "flip"\nlabel = "other"\n'
    assert labels(read(tomllib.loads(text)), "corrector") == ["flip", "none", "other"]


def test_titles_ranking_and_seeds_do_not_make_another_matrix():
    one = read(tomllib.loads(GOOD))
    other = read(tomllib.loads(GOOD.replace("toy", "t") + '[leaderboard]\nrank_by = "changes"\n'))
    third = read(tomllib.loads(GOOD.replace("seeds = 2", "seeds = 3")))
    fourth = read(tomllib.loads(GOOD.replace('use = "flock"', 'use = "flock"\nrows = 90')))
    assert one.canonical() == other.canonical() == third.canonical() != fourth.canonical()


BAD = [
    (GOOD.replace("seeds", "seed"), "unknown key 'seed'; did you mean 'seeds'?"),
    (GOOD + '[[attacker]]\nuse = "a1"\n', "unknown key 'attacker'"),
    (GOOD.replace("seeds = 2", "seeds = 0"), "seeds: "),
    (GOOD.replace("seeds = 2", 'seeds = "2"'), "not '2'"),
    (GOOD.replace("seeds = 2", "seeds = []"), "seeds: "),
    (GOOD.replace("seeds = 2", "seeds = [1, 1]"), "the same seed"),
    (GOOD.replace('[[dataset]]\nuse = "flock"', "") + "", "at least one [[dataset]]"),
    ("dataset = []\n" + GOOD.replace('[[dataset]]\nuse = "flock"', ""), "dataset: "),
    (GOOD + "[[adversary]]\nuse = ['a1', 'a2']\n", 'needs use = "NAME", one that `fpbench'),
    (GOOD + "[[corrector]]\nlabel = 'x'\n", '[[corrector]] no. 3: needs use = "NAME"'),
    (GOOD + "[[corrector]]\nuse = 'x'\nlabel = ''\n", "label: must be a text"),
    (GOOD + '[[corrector]]\nuse = "flip"\n', "the label 'flip' is taken"),
    (GOOD.replace("[1, 2]", "[]"), "number: sweep: must be a list of at least one"),
    (GOOD.replace("[1, 2]", "3"), "number: sweep: must be a list"),
    (GOOD.replace("sweep = [1, 2]", "linspace = [1, 2]"), "[low, high, number"),
    (GOOD.replace("sweep = [1, 2]", "linspace = [1, 2, 'x']"), "linspace: must"),
    (GOOD.replace("sweep = [1, 2]", "linspace = [1, 2, 0]"), "must be whole and 1 or more, not 0"),
    (GOOD.replace("sweep = [1, 2]", "linspace = [1, 2, 1000000000]"), "number: linspace is too"),
    (GOOD.replace("seeds = 2", "seeds = 2000000"), "is too large: 8,000,000 combinations, more"),
    (GOOD.replace("seeds = 2", "seeds = 500000"), "2,000,000 combinations"),
    (GOOD.replace("number = {", "a = { linspace = [0, 1, 9999] }\nb = { linspace = [0, 1, 9999] }\nnumber = {"),
     "no. 1 (parrot): sweeps too large: 199,960,002 combinations"),
    (GOOD.replace("sweep = [1, 2]", "geomspace = [0, 2, 3]"), "above 0"),
    (GOOD.replace('[[adversary]]\nuse = "coin"', ""), "no [[adversary]]"),
    (GOOD[:GOOD.index("[[disclosure]]")], "nothing to measure"),
    (GOOD + '[[mechanism]]\nuse = "hiss"\n', "no [[auditor]]"),
    (GOOD + "[[exclude]]\n", "would exclude everything"),
    (GOOD + "[[exclude]]\nlerner = 'parrot'\n", "did you mean 'learner'?"),
    (GOOD + "[[exclude]]\nlearner = 'parot'\n", "did you mean 'parrot'?"),
    (GOOD + "[split]\ntrain = 0.5\ntest = 0.5\nattack = 0.5\n", "more than 1"),
    (GOOD + "[split]\ntrain = 0.9\ntest = 'original'\nattack = 0.2\n", "train and attack sum to"),
    (GOOD + "[split]\ntest = 'orginal'\n", "split.test"),
    (GOOD + "[split]\nattack = 0.0\n", "[split]: attack: is 0, so the adversaries have no data to"),
    (GOOD + "[split]\ntrain = 1.5\n", "split.train"),
    (GOOD + "[split]\ntrian = 0.5\n", "unknown key 'split.trian'; did you mean 'train'?"),
    (GOOD + "[leaderboard]\nrank = 'gain'\n", "unknown key 'leaderboard.rank'; did you mean"),
    ("[[dataset", "not valid TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BAD)
def test_bad_input_is_one_clear_error(text, expected, tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(MatrixError) as error:
        read(file)
    assert expected in str(error.value)
    assert "bad.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MatrixError, match=r"gone\.toml: cannot be read: No such file"):
        read(tmp_path / "gone.toml")


def test_a_file_that_is_not_text(tmp_path):
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MatrixError, match="not valid TOML"):
        read(tmp_path / "b.toml")


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
words = st.sampled_from(["title", "seeds", "dataset", "learner", "split", "exclude", "leaderboard"])


@given(st.dictionaries(words | st.text(max_size=4), json_like, max_size=6))
def test_no_mapping_gives_anything_but_a_matrix_or_a_clear_error(data):
    try:
        read(data)
    except MatrixError as error:
        assert str(error).startswith("matrix: ")  # noqa: PT017


PROFILES = (
    GOOD
    + """
[profile.quick]
seeds = 1
[[profile.quick.dataset]]
use = "flock"
rows = 30
[profile.other]
title = "other"
"""
)


def test_a_profile_replaces_whole_keys():
    full, quick = (read(tomllib.loads(PROFILES), profile) for profile in (None, "quick"))
    assert full == replace(read(tomllib.loads(GOOD)), text=full.text, profiles=("quick", "other"))
    assert (quick.seeds, quick.profile) == ((0,), "quick")
    assert [choice.parameters for choice in quick.axes["dataset"]] == [{"rows": 30}]
    assert quick.axes["learner"] == full.axes["learner"]
    assert quick.canonical() != full.canonical()
    assert read(tomllib.loads(PROFILES), "other").title == "other"


def test_seeds_that_are_asked_for_go_before_all_others():
    for profile in (None, "quick"):
        assert read(tomllib.loads(PROFILES), profile, 4).seeds == (0, 1, 2, 3)
    with pytest.raises(MatrixError, match="seeds: "):
        read(tomllib.loads(PROFILES), seeds=0)


@pytest.mark.parametrize(
    ("text", "profile", "message"),
    [
        (PROFILES, "quik", "no profile 'quik'; did you mean 'quick'?"),
        (GOOD, "quick", "no profile 'quick'; the matrix has none"),
        (GOOD + "[profile]\nquick = 1\n", None, "profile: must be tables, [profile.NAME]"),
        (GOOD + "[profile.a.profile.b]\n", None, "[profile.a]: a profile cannot hold another"),
        (GOOD + "[profile.a]\nseed = 1\n", "a", "unknown key 'seed'; did you mean 'seeds'?"),
    ],
)
def test_profiles_that_say_nothing_sensible_are_refused(text, profile, message):
    with pytest.raises(MatrixError) as error:
        read(tomllib.loads(text), profile)
    assert message in str(error.value)


def test_a_column_that_was_called_label_is_asked_for_by_its_name():
    """In a matrix, `label` is what a table is called."""
    csv = discover().component("dataset", "csv")
    with pytest.raises(MatrixError, match="'label_column'; 'label' is what the table is called$"):
        validate(csv, {"path": "t.csv", "sensitive": "sex"}, "m.toml", ("use", "label"))
    with pytest.raises(MatrixError, match="needs a value for 'path'$"):
        validate(csv, {"label_column": "x", "sensitive": "y"}, "m.toml", ("use", "label"))

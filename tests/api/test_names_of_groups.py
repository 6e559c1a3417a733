"""People's groups are names, columns or codes wherever they are asked for."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference

import fpbench
from fpbench import InputError
from fpbench.auditing import ParityCurator, measure_membership, recover_groups
from fpbench.privacy import Curator

RNG = np.random.default_rng(3)
SEX = RNG.choice(["f", "m"], 300, p=[0.3, 0.7])
CODES = (SEX == "m").astype(int)
SAID = RNG.integers(0, 2, 300)
TRUE = RNG.integers(0, 2, 300)

FORMS = {
    "codes": CODES,
    "names": SEX,
    "a list": SEX.tolist(),
    "a column": pd.Series(SEX, name="sex"),
    "a categorical": pd.Series(SEX, dtype="category"),
    "a frame": pd.DataFrame({"sex": SEX}),
}


@pytest.mark.parametrize("groups", FORMS.values(), ids=FORMS)
def test_unfairness_takes_groups_of_any_form(groups):
    assert fpbench.unfairness(groups, SAID, form="between-groups") == pytest.approx(
        demographic_parity_difference(TRUE, SAID, sensitive_features=SEX)
    )
    odds = fpbench.unfairness(
        groups, SAID.astype(bool), pd.Series(TRUE), metric="equalized_odds", form="between-groups"
    )
    assert isinstance(odds, Fraction)
    assert float(odds) == pytest.approx(
        equalized_odds_difference(TRUE, SAID, sensitive_features=SEX)
    )
    assert fpbench.audit(SAID, None, groups, resamples=0).by_group["people"].tolist() == [
        (SEX == "f").sum(), (SEX == "m").sum()
    ]  # fmt: skip


def test_several_attributes_are_crossed():
    both = pd.DataFrame({"sex": ["f", "f", "m", "m"], "old": ["y", "n", "y", "n"]})
    assert fpbench.unfairness(both, [1, 0, 0, 0], form="between-groups") == 1
    assert fpbench.unfairness(both["sex"], [1, 0, 0, 0], form="between-groups") == Fraction(1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"predictions": np.where(SAID, "yes", "no")}, "they are 'no' and 'yes': pass (values == 'yes')"),
        ({"predictions": SAID + 1}, "they are 1 and 2: pass (values == 2)"),
        ({"predictions": SAID[:9]}, "predictions: has 9 values, and sensitive 300 people"),
        ({"metric": "equal-opportunity"}, "metric 'equal-opportunity' needs the labels"),
        ({"metric": "equal-oportunity"}, "did you mean 'equal-opportunity'?"),
        ({"sensitive": "sex"}, "if that is a column of X, pass X['sex']"),
        ({"sensitive": ["f"] * 300}, "has one group, f"),
        ({"sensitive": [None, *SEX[1:]]}, "1 values are missing"),
    ],
)  # fmt: skip
def test_wrong_people_are_one_error(arguments, message):
    with pytest.raises(InputError) as error:
        fpbench.unfairness(**{"sensitive": SEX, "predictions": SAID, **arguments})
    assert message in str(error.value)


def test_a_guess_of_names_is_corrected_to_names():
    guess, said, costs = ["f", "f", "f", "m", "m", "m"], [1, 1, 0, 1, 0, 0], [3, 2, 1, 1, 1, 2]
    options = {"weights": costs, "tolerance": 0.1}
    assert fpbench.correct(guess, said, **options).values.tolist() == list("fffmfm")
    column = pd.Series(guess, dtype="category")
    assert fpbench.correct(column, said, groups=["m", "f"], **options).values.tolist() == list(
        "fffmfm"
    )
    with pytest.raises(InputError, match="guess: sensitive: there is no group 'f'; valid: d, m"):
        fpbench.correct(guess, said, groups=["m", "d"])
    with pytest.raises(InputError, match="groups: must be names, as the guess is of names"):
        fpbench.correct(guess, said, groups=2)
    with pytest.raises(
        InputError, match=r"labels: must be whole numbers.*pass \(values == 'yes'\)"
    ):
        fpbench.correct(CODES, SAID, labels=np.where(TRUE, "yes", "no"), metric="equal-opportunity")


def test_curators_and_membership_take_names():
    assert recover_groups(ParityCurator(SEX[:40])).groups.tolist() == CODES[:40].tolist()
    with pytest.raises(InputError, match="groups must be two, not 3: d, f, m"):
        ParityCurator([*SEX, "d"])
    named = Curator(SEX, groups=["m", "f", "d"])
    assert named.groups == ("m", "f", "d")
    with pytest.raises(InputError, match="there is no group 'm'; did you mean 'me'"):
        Curator(SEX, groups=["me", "f"])
    scores, inside = RNG.normal(size=300), RNG.random(300) < 0.5
    tables = [
        measure_membership(scores, inside, who, ("f", "m"), rng=np.random.default_rng(0)).table
        for who in (CODES, SEX)
    ]
    pd.testing.assert_frame_equal(*tables)


SHUFFLED = {
    "attack": lambda X, y, sex: fpbench.attack(y, X, y, sex),
    "audit": lambda X, y, sex: fpbench.audit(y.to_numpy(), X, sex),
    "audit of predictions": lambda X, y, sex: fpbench.audit(y, None, sex),
    "unfairness": lambda X, y, sex: fpbench.unfairness(sex, y),
    "report": lambda X, y, sex: fpbench.FairnessReport.from_predictions(X, y, sex, by=["age"]),
    "correct": lambda X, y, sex: fpbench.correct(sex, y),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_rows_of_pandas_in_another_order_are_refused(name):
    """By position, a model that decides by sex alone would pass as fair."""
    rng = np.random.default_rng(0)
    sex = pd.Series(rng.choice(["f", "m"], 300), name="sex")
    X = pd.DataFrame({"age": rng.integers(18, 66, 300).astype(float)})
    y = (sex == "m").astype(int)
    shuffled = sex.sample(frac=1, random_state=1)
    SHUFFLED[name](X, y, sex)
    for other in (shuffled, sex.set_axis(np.arange(300) + 5), sex.set_axis(X.index.astype(str))):
        with pytest.raises(
            InputError, match=r"rows are named differently from those of .*row \d+ is"
        ):
            SHUFFLED[name](X, y, other)
    SHUFFLED[name](X, y, shuffled.to_numpy())

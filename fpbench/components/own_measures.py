"""The measures of fpbench itself: those in rows, and those computed from rows.

The table `OWN` has their names, headings and meanings, and which way is better: rankings, reports
and the glossary in the docs follow it. No note of a component may have such a name, in any cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fpbench.base.errors import PluginError
from fpbench.components.measures import Glossary, Measure, fold_name
from fpbench.components.names import FIXED

GUARANTEE = "guarantee"
"""The column of leaderboards with the kind of the learner's guarantee."""
NO_GUARANTEE = "none"
"""Its value for a learner without a guarantee."""

_TABLE = """
[every row]
seconds | less s | what the cell would take if run alone
portable | neither | false in rows whose numbers may differ on another processor
[models]
train_accuracy | greater share | training people whose label the model predicts
test_accuracy, accuracy | greater share | test people whose label the model predicts
train_unfairness | less | unfairness of the predictions for the training people, by the metric of
    the claim, or else by the one that the learner was trained for
test_unfairness, unfairness | less | unfairness of the predictions for the test people, by the same
    metric as for the training people
> model_epsilon, model eps | less | epsilon of the differential privacy that the model guarantees
    its training people
> model_delta | less | delta of that guarantee
> model_neighbours | neither | which data sets that guarantee compares
> model_rho | less | the same guarantee as zero-concentrated privacy
[claims]
> claim_metric | neither | the fairness metric of the claim
> claim_form | neither | what the claim compares the groups' rates with
> claim_tolerance | neither | the unfairness that the claim allows
claim_holds, claim true | greater yes or no | whether the claim is true of the training people; a
    noisy claim may be false
> claim_epsilon, claim eps | less | epsilon of a private claim
> claim_delta | less | delta of a private claim
> claim_neighbours | neither | which data sets the guarantee of a private claim compares
> claim_noise | neither | where the noise of a private claim came from: simulation or secure
[attacks]
> asked_metric, trained for | neither | the fairness metric that the learner was trained for
> asked_tolerance, trained to | neither | the upper bound on unfairness that it was trained to meet
people | neither people | people that the target was trained on
n_groups, groups | neither | number of groups of the sensitive attribute
secret | neither | name of the sensitive column, or of several
group_names | neither | names of the groups
adversary_sees, sees | neither | what the adversary sees of the target people
majority_accuracy, baseline | neither share | people whose group is right if everyone is assigned to
    the largest group
prior_accuracy, prior | neither share | expected share of people whose group is right if everyone's
    group is drawn from the shares of the attack set
without_model_accuracy, no model | greater share | accuracy without the disclosure of an adversary
    that gets the same model output for everybody; of `fpbench.attack`
without_accuracy, without | greater share | people whose group the adversary's calibrated beliefs
    predict right, without the disclosure
with_accuracy, with | greater share | people whose group the beliefs given the disclosure predict
    right, or the corrected guess if the corrector has no beliefs
leak | greater share | what the disclosure adds: accuracy with it minus accuracy without it
leak_expected, leak expected | greater share | the leak that the beliefs given the disclosure expect
limit_beliefs, limit (beliefs) | neither share | upper bound on the expected leak for an adversary
    with these beliefs, if they are exact
limit_exact, limit (exact) | neither share | the expected leak of the exact counts behind every
    claim about parity, if these beliefs are exact; two groups
dp_limit, limit (privacy) | neither share | upper bound on the leak from the guarantee of a private
    disclosure, if these beliefs are exact
limit_covers, limit of | neither | what the limits are about: the disclosure, or the disclosure
    without what the model (if trained with these people's groups) or its predictions (if the guess
    did not use them) give away
household_size, household | neither people | largest number of attacked people whose groups depend
    on each other's: it widens the limits
> disclosure_bits, disclosure bits | less bits:1 | upper bound on the information in the disclosure
    about the groups of all people
bayes_accuracy, Bayes | neither share | expected accuracy of the best possible guess from what is
    seen of people, if the distribution of the data is known
> people_proven, proven people | greater share | people whose group follows from the disclosure
    alone
> proven_unsure, proven unsure | greater share | proven people about whom the adversary was unsure:
    its belief in the group was between .05 and .95
people_sure, sure people | greater share | people whose group is not proven, but believed above
    .999 with the disclosure, and not without it
> facts | neither | distinct sets of people whose counts by group a disclosure reveals, without
    those that follow by subtraction; empty for disclosures without such counts
calibration | neither | how beliefs were calibrated on the held-out people
log_loss, log loss | less nats | mean negative log-probability of the true groups under the
    calibrated beliefs
calibration_error, cal. error | less share | mean difference between confidence and accuracy of the
    calibrated beliefs, over 15 bins
auc, AUC | greater share | probability that a member of a group gets a higher belief in it than a
    non-member, averaged over groups
tpr_at_tenth_percent, TPR at .001 | greater share | true positive rate in finding members of a group
    at a false positive rate of .1 %; for the most exposed group
tpr_at_one_percent, TPR at .01 | greater share | true positive rate in finding members of a group at
    a false positive rate of 1 %; for the most exposed group
surest_one_percent, surest 1 % | greater share | right guesses among the 1 % of people about whom
    the adversary is surest
surest_ten_percent, surest 10 % | greater share | right guesses among the 10 % of people about whom
    the adversary is surest
worst_group, worst group | neither | the group whose members are guessed right most often
worst_group_accuracy, worst group right | greater share | members of the worst group who are guessed
    right
safest_group_accuracy, safest group right | greater share | members of the group that is guessed
    right least often who are guessed right
worst_slice, worst slice | neither | the slice of at least 50 people that is guessed right most
    often, chosen on one half of the people
worst_slice_accuracy, worst slice right | greater share | members of the worst slice, in the other
    half, who are guessed right
answered | greater share | people about whom the adversary does not abstain
answered_accuracy, answers right | greater share | people whose group is guessed right, among those
    answered
initial_accuracy, guess | greater share | people whose group the adversary guesses right
balanced_accuracy, balanced | greater share | members of a group whose group the adversary guesses
    right, averaged over groups
corrected_accuracy, corrected | greater share | people whose group is right after the correction
gain | greater share | what the correction adds to the accuracy of the guess
changes | less people | guesses that the correction changes
change_precision, changes right | greater share | changed guesses that are right after the change
> objective | neither | total weight of the changed guesses
> solver_status, solver | neither | the solver's status of its answer
> solver_gap | less share | upper bound on the distance of the objective from the optimum, relative
    to the objective
> proven | greater yes or no | whether the solver proved its answer optimal, or proved that nothing
    satisfies the claim
correct_seconds, solve s | less s | how long the correction took
reconsidered_accuracy, recalibrated | greater share | accuracy of the adversary's guess after the
    corrector recalibrated it, before the claim was used
[releases]
> audit_metric, metric | neither | the fairness metric that is audited
> epsilon | less | epsilon of one audit; for a learner as a defence, of the model's guarantee
> delta | less | delta of one audit
> neighbours | neither | which data sets the guarantee of an audit compares
> noise | neither | where the noise of an audit came from: simulation or secure
repetitions | neither | number of identical audits, each with fresh noise
true_ratio, truth | neither ratio | least group rate divided by the greatest, of the predictions for
    the audited people
estimated_ratio, estimate | neither ratio | mean estimate of the true ratio by the audits
error | less ratio | mean absolute error of the estimates
error_deviation, error sd | less ratio | standard deviation of the absolute errors over the
    repetitions
bias | neither ratio | mean error of the estimates
coverage | greater share | intervals that contain the truth
interval_width, interval | less ratio | mean width of the intervals
random_guess_error, guessing | neither ratio | expected error of an estimate that is drawn uniformly
    from 0 to 1
four_fifths_right, 4/5 right | greater share | estimates on the same side of 0.8 as the truth
true_tenth | neither ratio | the truth, rounded down to tenths
tenth_recall | greater share | estimates that round down to the same tenth
[attacks beside others]
limit | neither share | upper bound on the expected leak for any adversary, from the disclosure's
    bits and the error of the run's strongest adversary without it
best_without_accuracy, best without | greater share | accuracy without the disclosure, at the same
    model and seed, of the run's best adversary over all seeds
repair | less share | gain minus limit, if positive: at least this much of the gain is repair of the
    first guess
best_initial_accuracy, best guess | greater share | accuracy of the best guess of any adversary of
    the run at the same model and seed
gain_over_best, over best | greater share | accuracy after the correction minus that of the best
    guess of any adversary
[audits beside others]
uar, UAR | greater share | unweighted average recall of the tenths, over all seeds of the same audit
uar_minus_error, UAR - error | greater | UAR minus the mean error over the same seeds
[defences]
mean_accuracy, mean reached | less share | mean accuracy of attacks
strongest_accuracy, reached | less share | accuracy of the strongest attack
mean_advantage, mean advantage | less share | mean accuracy of attacks minus that of always guessing
    the largest group
advantage | less share | accuracy of the strongest attack minus that of always guessing the largest
    group
"""
"""By what they are of: name, heading | which way is better, unit | meaning. What begins with `>` is
copied from a component's answer, not computed."""

_, *_parts = re.split(r"^\[(.*)\]\n", _TABLE.replace("\n> ", "\n"), flags=re.MULTILINE)
_OF = {name: Measure.table("always", text) for name, text in zip(*[iter(_parts)] * 2, strict=True)}
OWN = tuple(measure for measures in _OF.values() for measure in measures)
"""The table of measures."""
GLOSSARY = Glossary(OWN)


def _names(*whose: str) -> frozenset[str]:
    return frozenset(measure.name for each in whose for measure in _OF[each]) - FIXED


IN_ATTACKS = _names("every row", "models", "claims", "attacks")
"""Names of measures in rows of attacks."""
IN_AUDITS = _names("every row", "models", "releases")
"""Names of measures in rows of audits."""
MEASURED = IN_ATTACKS | IN_AUDITS
"""Names of measures in any row."""
MEASURES = IN_ATTACKS | _names("attacks beside others")
"""Names of measures of attacks, the compared ones included."""
DERIVED = _names("attacks beside others", "audits beside others", "defences")
"""Names of measures that are computed from rows, and are in no row."""
COMPUTED = MEASURED - {*re.findall(r"^> (\w+)", _TABLE, re.MULTILINE)}
"""Names of measures in rows that fpbench computes rather than copies from components."""

RESERVED = {fold_name(name): name for name in sorted(MEASURED | DERIVED | FIXED | {GUARANTEE})}
"""Names that no component may use, by folded name."""
_MEANS = {fold_name(text): one.name for one in OWN for text in (one.heading, one.name)} | RESERVED
"""Measures whose names and headings no component may declare, by folded text."""


def why_not_a_note(name: str) -> str | None:
    """Why no component may give a measure of this name; None if one may."""
    if not (name.isascii() and name.isidentifier()):
        return "is not a name in ASCII letters, digits and _"
    own = RESERVED.get(fold_name(name))
    if own is None:
        return None
    whose = "what every row has" if own in FIXED else "what fpbench measures itself"
    return f"is {whose}" if name == own else f"reads as {own!r}, which is {whose}"


def why_not_declarable(measures: object) -> str | None:
    """Why the declared measures of a component are wrong; None if they are right."""
    if not isinstance(measures, tuple) or not all(isinstance(one, Measure) for one in measures):
        return "must be a tuple of fpbench.Measure"
    names: set[str] = set()
    for measure in measures:
        try:
            measure.check()
        except PluginError as error:
            return str(error)
        for text in () if "*" in measure.name else (measure.name, measure.heading):
            if (own := _MEANS.get(fold_name(text))) is not None:
                return f"{measure.name!r}: {text!r} is a measure of fpbench itself, {own!r}"
        if measure.name in names:
            return f"{measure.name!r} is declared twice"
        names.add(measure.name)
    return None


def list_misplaced(names: Iterable[str], audit: bool) -> list[str]:
    """Names that neither fpbench nor a component may give in rows of an attack or an audit."""
    here = IN_AUDITS if audit else IN_ATTACKS
    return [name for name in names if name not in here and why_not_a_note(name)]

"""Components, engines and commands of the packages in `plugins/`, to name a missing package."""

_OFFERED = {
    ("fpbench-hello", "adversary"): "majority-hello",
    ("fpbench-opendp", "mechanism"): "opendp-laplace, opendp-discrete-laplace, opendp-geometric, "
    "opendp-gaussian, opendp-discrete-gaussian, opendp-permute-and-flip",
    ("fpbench-ortools", "corrector"): "cp-sat",
    ("fpbench-art", "adversary"): "art-baseline, art-true-label, art-black-box",
    ("fpbench-aif360", "learner"): "aif360-reweighing, aif360-disparate-impact-remover",
    ("fpbench-error-parity", "learner"): "relaxed-odds",
    ("fpbench-defences", "learner"): "adversarial, distilled, fare, pflr, synthetic",
    ("fpbench-defences", "disclosure"): "dp-release",
    ("fpbench-dask", "engine"): "dask",
    ("fpbench-membership", "auditor"): "membership, epsilon-lower-bound",
    ("fpbench-board", "command"): "board",
    ("fpbench-curator", "command"): "curator",
}
OWN_PLUGINS = {
    (kind, name): package
    for (package, kind), names in _OFFERED.items()
    for name in names.split(", ")
}
"""The distribution that has a component, an engine or a command, by its kind and name."""

"""Components of the plugins in the repository's `plugins/`, to name a missing plugin."""

_OFFERED = {
    ("fpbench-hello", "adversary"): "majority-hello",
    ("fpbench-opendp", "mechanism"): "opendp-laplace, opendp-discrete-laplace, opendp-geometric, "
    "opendp-gaussian, opendp-discrete-gaussian, opendp-permute-and-flip",
    ("fpbench-ortools", "corrector"): "cp-sat",
    ("fpbench-art", "adversary"): "art-baseline, art-true-label, art-black-box",
    ("fpbench-aif360", "learner"): "aif360-reweighing, aif360-disparate-impact-remover",
    ("fpbench-error-parity", "learner"): "relaxed-odds",
}
OWN_PLUGINS = {
    (kind, name): package
    for (package, kind), names in _OFFERED.items()
    for name in names.split(", ")
}
"""The distribution that has a component, by its kind and name."""

"""Templates of `fpbench new` for each kind: modules that work unchanged."""

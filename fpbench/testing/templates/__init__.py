"""What `fpbench new` writes, for each kind: modules that work as they stand."""

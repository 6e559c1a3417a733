"""What others send in: a run directory with its lock of versions, a manifest, and a signature."""

"""Submissions: a run directory with its lock of versions, a manifest, and a signature."""

"""Intervals and tests of a handful of seeds."""

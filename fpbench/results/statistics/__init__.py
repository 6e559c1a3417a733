"""Intervals and tests for small numbers of seeds."""

"""Rows become rankings, statistics, verdicts: pure functions.

Imports `base`, `components`, `matrix`, `store`.
"""

"""Comparison of rows with the statements of a paper."""

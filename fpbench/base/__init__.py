"""Errors, validation, numbers as written, files read with care: no word of fairness or privacy.

Imports nothing of fpbench.
"""

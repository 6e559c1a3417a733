"""Errors, validation, numbers as text, guarded files: nothing about fairness or privacy.

Imports nothing of fpbench.
"""

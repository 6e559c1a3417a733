"""Classifiers, rules, batched fits, private trees.

Imports `base`, `data`, `components`.
"""

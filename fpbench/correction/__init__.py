"""From a guess and a claim to a correction or a posterior.

Imports `base`, `components`.
"""

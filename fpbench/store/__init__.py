"""A run directory: written, read, merged, compared.

Imports `base`, `components`, `matrix`.
"""

"""A matrix file becomes cells and unique steps; nothing is run.

Imports `base`, `data`, `components`.
"""

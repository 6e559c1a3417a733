"""Data sets that are one table: a frame of the user, CSV, Parquet.

Imports `base`, `data`, `components`.
"""

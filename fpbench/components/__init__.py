"""The contract: base classes of the eight kinds, records between steps, the catalog.

Imports `base`, `data`.
"""

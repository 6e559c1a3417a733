"""The contract: base classes of the eight kinds, records that flow between them, the catalog.

Imports `base`, `data`.
"""

"""Accounting, the ledger, consistent counts, noisy votes, the curator.

Imports `base`, `data`, `components`.
"""

"""What is measured of a model: excessive risk, individual fairness.

Imports `base`, `data`, `components`, `privacy`, `models`.
"""

"""Tran et al., 2021: private aggregation of teachers, and what its privacy costs each person."""

"""The functions for scripts and notebooks.

Imports all rooms but `testing`, `report`, `cli`, `builtin`.
"""

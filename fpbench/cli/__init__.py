"""Commands. `screen` is the only place that prints.

Imports all rooms but `builtin`.
"""

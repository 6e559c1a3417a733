"""People as data: samples, tables, groups, sensitive attributes, domains, data files.

Imports `base`.
"""

"""Steps become results: what a step does, isolation, engines, the runner.

Imports all rooms of data, components and methods, `matrix` and `store`.
"""

"""What a script or notebook calls.

Imports all rooms but `testing`, `report`, `cli`, `builtin`.
"""

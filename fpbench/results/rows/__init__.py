"""Which rows, and how many rows become one line."""

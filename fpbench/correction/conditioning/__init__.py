"""Beliefs given a region of counts: exactly, by tables, or by the likeliest counts."""

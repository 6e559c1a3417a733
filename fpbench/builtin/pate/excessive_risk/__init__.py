"""Excessive risk, the cost of privacy for each person: draws, closed form, bounds."""

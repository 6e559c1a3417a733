"""Fairness reports: rates by group and slice as facts, and what follows from them about people."""

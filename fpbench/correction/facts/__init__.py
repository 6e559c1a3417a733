"""Proofs and beliefs from facts: counts of groups in overlapping sets of people."""

"""Membership inference: attacks on arrays of scores, and measures of their success."""

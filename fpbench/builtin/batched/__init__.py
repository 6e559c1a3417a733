"""Many models of one family fitted at once."""

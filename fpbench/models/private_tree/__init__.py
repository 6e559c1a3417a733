"""Decision trees under differential privacy."""

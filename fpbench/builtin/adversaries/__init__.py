"""Built-in adversaries."""

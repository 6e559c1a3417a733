"""Built-in auditors."""

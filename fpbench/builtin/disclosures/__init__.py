"""Built-in disclosures."""

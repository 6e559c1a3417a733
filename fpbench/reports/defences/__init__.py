"""What can be done to a report before it is published: noise, rounding, suppression."""

"""What can be known about groups: conditions on counts, rates, constraints, facts."""

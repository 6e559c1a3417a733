"""What a fairness report gives away about each person, who says so, and what may be done."""

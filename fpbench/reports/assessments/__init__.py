"""What a fairness report gives away about each person: the attack, the verdict, the remedy."""

"""What the learner `fare` is made of: a fair tree, and what its leaves tell of groups."""

"""Built-in learners."""

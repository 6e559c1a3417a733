"""Steps in processes of their own: third parties apart from the truth, limits of each step."""

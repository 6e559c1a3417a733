"""Who can be told to have been in the training data: attacks on arrays of scores, and measures."""

"""Parts of the learner `fare`: a fair tree, and bounds on what its leaves reveal of groups."""

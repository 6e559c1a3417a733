"""Lower bounds on the epsilon of a learner, from models trained with and without canaries."""

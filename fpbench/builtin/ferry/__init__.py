"""Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, SaTML 2023.

Attacks by a trained classifier, published unfairness, and correctors: the integer program and the
constraint program of the paper, and the exact one of ours.
"""

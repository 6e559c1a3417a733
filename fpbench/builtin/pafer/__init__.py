"""Van der Steen et al., PAFER, 2023: an audit of a model's rules by noisy histograms."""

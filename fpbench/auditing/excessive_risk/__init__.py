"""What privacy costs whom: draws, closed form, bounds."""

"""What to do about noisy counts that cannot be true."""

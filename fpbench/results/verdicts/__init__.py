"""Whether rows say what a paper says."""

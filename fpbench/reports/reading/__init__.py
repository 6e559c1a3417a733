"""Reports from files, long tables and metric frames."""

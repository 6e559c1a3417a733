"""Selection of rows, and the averages of rows that become one line."""

"""Answers of processes as plain data: nothing is unpickled where the truth is."""

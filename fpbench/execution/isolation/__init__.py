"""One-use processes: adversaries apart from the truth, and limits on time and memory."""

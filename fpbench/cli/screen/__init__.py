"""What is printed: tables, boards, progress, errors."""

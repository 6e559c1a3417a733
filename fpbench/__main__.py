"""`python -m fpbench`."""

from fpbench.cli import main

main()

"""The command `fpbench`, and `python -m fpbench`."""

import gc

# Imports make many objects and no garbage: looking for some, now and again at exit, would be a
# fifth of the time that a quick command takes.
gc.disable()

from fpbench.cli import main  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    main()

"""The command `fpbench`, and `python -m fpbench`."""

import gc
import sys

# Imports make many objects and no garbage: looking for some, now and again at exit, would be a
# fifth of the time that a quick command takes.
gc.disable()

# With -m, Python looks for every module in the current folder first: for a numpy.py or an installed
# plugin that lies beside a stranger's matrix, too. The command `fpbench` never looks there.
if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]

from fpbench.cli.main import main  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    main()

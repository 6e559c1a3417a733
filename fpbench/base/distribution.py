"""The name under which fpbench is installed, which is not that of its package.

On the package index, `fpbench` belongs to somebody else: a benchmark of floating-point numbers.
"""

DISTRIBUTION = "fpbench-toolkit"


def tell_extra(extra: str) -> str:
    """The command that installs an extra.

    Parameters
    ----------
    extra
        Its name, such as `report`; `pyproject.toml` lists them.
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"

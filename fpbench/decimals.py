"""Numbers as they were written, so that what is decided never depends on rounding."""

from fractions import Fraction


def as_written(number: float | Fraction) -> Fraction:
    """The decimal that a float was written as, exactly (0.1 is 1/10); a fraction as it is."""
    return number if isinstance(number, Fraction) else Fraction(str(float(number)))

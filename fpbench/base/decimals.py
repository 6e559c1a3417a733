"""Numbers as they were written, so that what is decided never depends on rounding."""

from fractions import Fraction


def as_written(number: float | Fraction) -> Fraction:
    """The decimal that a float was written as, exactly (0.1 is 1/10); a fraction as it is."""
    return number if isinstance(number, Fraction) else Fraction(str(float(number)))


def short(number: float | None) -> str:
    """Four decimals; no zero before the point, as is usual for shares."""
    if number is None:
        return "-"
    text = f"{number:.4f}" if abs(number) < 100 else f"{number:,.0f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text

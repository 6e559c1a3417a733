"""A plugin of one corrector, as its author writes it."""

FLIP = """
from fpbench import Corrector, hookimpl

class Flip(Corrector):
    name = "flip"
    summary = "the flip of {owner}"

    def correct(self, problem):
        return None

@hookimpl
def fpbench_correctors():
    return [Flip]
"""

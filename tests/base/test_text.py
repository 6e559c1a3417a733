"""Words and numbers for people."""

import pytest

from fpbench.base.text import hide_paths, hyphenate


@pytest.mark.parametrize(("text", "shown"), [
    ("/tmp/place/run: is damaged", "run: is damaged"),
    ("nobody whom /home/me/signers.txt names", "nobody whom signers.txt names"),
    ('path="/home/me/people.csv"', 'path="people.csv"'),
    ("path=&quot;/home/me/people.csv&quot;", "path=&quot;people.csv&quot;"),
    ("(file:///tmp/a/b), ['/tmp/a/c']", "(b), ['c']"),
    ("/home/me/My Data/people.csv", "My Data/people.csv"),
    ("/tmp", "/tmp"),
    ("https://example.org/home/me/x", "https://example.org/home/me/x"),
    ('<a href="../tmp/x"></tmp></a>', '<a href="../tmp/x"></tmp></a>'),
    ("runs/tmp/x, ~/tmp/x, A+/tmp/x", "runs/tmp/x, ~/tmp/x, A+/tmp/x"),
    ("/dev/shm/x is full", "/dev/shm/x is full"),
])  # fmt: skip
def test_paths_of_this_machine_are_hidden_and_nothing_else(text, shown):
    assert hide_paths(text) == shown


@pytest.mark.parametrize("name", ["Selection rate", " selection_rate", "SELECTION - RATE"])
def test_a_name_is_the_same_however_it_is_written(name):
    assert hyphenate(name) == "selection-rate"

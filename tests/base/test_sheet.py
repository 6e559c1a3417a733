"""Tables as Markdown, LaTeX and HTML: nothing that a label says is obeyed."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.base.sheet import Column, Sheet, write_html, write_latex, write_markdown
from fpbench.base.text import escape_unprintable

EVIL = "<script>alert('x')</script> & | \\input{/etc/passwd} $x_1^2$ #~%\"`*[link](http://x)"


def sheet(text="plain", number="-.1250"):
    return Sheet(
        "A title", "one · two", (Column("#"), Column("learner", number=False), Column("gain")),
        (("=1", text, number),), ("a note",), ("odd",), ("broke",),
    )  # fmt: skip


def test_markdown():
    assert write_markdown([sheet()]) == (
        "**A title**  \none · two\n\n| \\# | learner | gain |\n| ---: | --- | ---: |\n"
        "| =1 | plain | -.1250 |\n\n- a note\n- warning: odd\n- failed: broke"
    )


def test_latex():
    assert write_latex([sheet()]) == "\n".join([
        r"\begin{table}",
        r"\centering",
        r"\caption{A title. one, two. a note. warning: odd. failed: broke}",
        r"\begin{tabular}{rlr}",
        r"\toprule",
        r"\# & learner & gain \\",
        r"\midrule",
        r"=1 & plain & $-.1250$ \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ])  # fmt: skip


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.said = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.said.append(data)


KNOWN = {"table", "caption", "strong", "br", "thead", "tr", "th", "tbody", "td", "ul", "li"}


@pytest.mark.slow
@given(st.text())
def test_html_shows_words_and_obeys_none(text):
    for word in (text, EVIL, EVIL + text):
        read = Reader(write_html([sheet(word)]))
        assert set(read.tags) <= KNOWN
        assert escape_unprintable(word, but="\n") in "".join(read.said)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"])))
def test_latex_and_markdown_obey_no_word(text):
    tex = write_latex([sheet(EVIL + text)]).split("\n")[7]
    bare = re.sub(r"\\(text\w+\{\}|[{}$&#%_\\])", "", tex.removesuffix(r" \\"))
    assert bare.count("&") == 2  # those between columns
    assert not set(bare) & set("\\{}#%_^~")
    assert bare.count("$") == 2  # those around the number
    md = write_markdown([sheet(EVIL + text)]).split("\n")[5]
    plain = re.sub(r"\\[|*_`\[\]#~\\]", "", md)
    assert plain.count("|") == 4
    assert not set(plain) & set("<>*_`[]")


@pytest.mark.parametrize("write", [write_html, write_latex, write_markdown])
def test_no_letter_that_a_terminal_obeys_is_written(write):
    """Not even into a file: who shows it with `cat` is as little surprised as at the screen."""
    letters = "".join(map(chr, (*range(32), *range(127, 160), 0x202E, 0x2066, 0xAD, 0x2028)))
    text = write([sheet(letters)])
    assert not {letter for letter in text if escape_unprintable(letter, but="\n") != letter}
    assert "x1b" in text
    assert "x9b" in text


def test_numbers_stay_whole_where_labels_must_be_broken():
    labels = tuple(Column(name, number=False) for name in ("dataset", "learner", "adversary"))
    long = ("census-synthetic", "exponentiated-gradient tolerance=0.02", "somebody-strong")
    table = Sheet("", "", (*labels, Column("gain"), Column("difference")), ((*long, ".1234", "-.1234"),),
                  spare=("gain",))  # fmt: skip
    for room, headings, widest in ((90, 5, 37), (60, 4, 19), (46, 4, 11), (40, 4, 10)):
        part, widths = table.fit(room)
        assert len(part.columns) == headings and sum(widths) + len(widths) - 1 <= room
        assert widths[-1] == len("difference") and max(widths) == widest
        assert part.all_notes == (() if headings == 5 else ("1 more column on a wider terminal",))


def test_what_tells_most_stays_while_labels_may_be_broken():
    columns = (Column("learner", number=False), Column("gain"), Column("95 %"))
    rows = (("x" * 22, ".1234", ".1000 to .2000"),)
    for telling, headings in ((frozenset(), 2), (frozenset({"95 %"}), 3)):
        part, _ = Sheet("", "", columns, rows, spare=("95 %",), telling=telling).fit(40)
        assert len(part.columns) == headings

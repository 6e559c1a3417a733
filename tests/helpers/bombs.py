"""SQLite files in which pages are read again and again, which SQLite does not notice by itself."""

import sqlite3
import struct
from contextlib import closing

COPIES = 480
"""Number of times that a page is read. Real bombs do this on twenty levels."""


def repeat_page(file, table):
    """Read the rows of a table again and again; of `sqlite_master`, the indexes without a text."""
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        (size,) = db.execute("PRAGMA page_size").fetchone()
        master = [("sqlite_master", 1, "")]
        master += db.execute("SELECT name, rootpage, sql FROM sqlite_master").fetchall()
    root = next(page for name, page, _ in master if name == table)
    content = bytearray(file.read_bytes())
    page = content[(root - 1) * size : root * size]
    head = 100 if root == 1 else 0
    assert page[head] == 13, "the rows fill more than a page"
    count = int.from_bytes(page[head + 3 : head + 5], "big")
    places = [page[head + 8 + 2 * i : head + 10 + 2 * i] for i in range(count)]
    repeated = [each for each, (*_, sql) in zip(places, master[1:], strict=False) if sql is None]
    first = len(content) // size + 1
    for each in (places, repeated if root == 1 else places):
        leaf = page.copy()
        leaf[: 8 + 2 * len(each)] = page[head : head + 8] + b"".join(each)
        leaf[3:5] = len(each).to_bytes(2, "big")
        content += leaf
    place, tree = size - 6 * COPIES, page[:head] + bytes(size - head)
    tree[head : head + 12] = struct.pack(">BHHHBI", 5, 0, COPIES, place, 0, first + 1)
    for i in range(COPIES):
        struct.pack_into(">H", tree, head + 12 + 2 * i, place + 6 * i)
        child, key = first + (i > 0), count + i
        struct.pack_into(">IBB", tree, place + 6 * i, child, 0x80 | key >> 7, key & 0x7F)
    content[(root - 1) * size : root * size] = tree
    content[28:32] = (len(content) // size).to_bytes(4, "big")
    file.write_bytes(content)


def share_overflow(file):
    """Let two long texts of a store have the same pages."""
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("VACUUM")  # new pages are adjacent
        (size,) = db.execute("PRAGMA page_size").fetchone()
        for letter in "AB":
            text = f'{{"note": "{letter * 3 * size}"}}'
            db.execute("INSERT INTO session (started, environment) VALUES (1.0, ?)", [text])
    content = file.read_bytes()
    pages = [content[start : start + size] for start in range(0, len(content), size)]
    numbers = [
        next(i for i, page in enumerate(pages, 1) if page[4:99] == letter * 95)
        for letter in (b"A", b"B")
    ]
    pointer, wanted = (struct.pack(">I", number) for number in reversed(numbers))
    leaf = next(i for i, page in enumerate(pages) if b'"BBBB' in page)
    place = content.index(pointer, leaf * size)
    file.write_bytes(content[:place] + wanted + content[place + 4 :])

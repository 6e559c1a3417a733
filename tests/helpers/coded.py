"""What a report page codes, read back."""

import base64
import gzip
import json


def unpack(text):
    """The data that a page carries compressed."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


def decode_column(coded):
    """The values of a coded column."""
    decoded = coded["all"] if "all" in coded else [coded["of"][i] for i in coded["at"]]
    return [from_plain(value) for value in decoded]


def from_plain(value):
    if not isinstance(value, dict):
        return value
    word = value["is"]
    return float(word) if word in ("nan", "inf", "-inf") else int(word)

"""What error messages share: numbers with their nouns, and the user's line."""

import pytest

from harp.trace.source_locations import plural, short


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "axes", "0 axes"),
        (1, "axes", "1 axis"),
        (2, "axes", "2 axes"),
        (1, "indices", "1 index"),
        (1, "entries", "1 entry"),
        (1, "leaves", "1 leaf"),
        (1, "arguments", "1 argument"),
    ],
)
def test_nouns_follow_their_numbers(count, noun, text):
    assert plural(count, noun) == text


def test_large_numbers_are_not_written_out():
    assert short(12) == "12"
    assert short(-(2**300)) == "-2**300 or so"

"""Which loop of one text is which of another one."""

from __future__ import annotations

from harp.lower.report.page.matching import Head, Opened, loops_of, matched


def heads(text: str) -> list[Head]:
    """Names, indented by a space for each loop round them."""
    opened = Opened()
    for line in text.split("/"):
        name = line.lstrip()
        opened.close(len(line) - len(name))
        opened.enter(len(line) - len(name), name)
    return opened.heads


def test_loops_of_the_same_name_are_told_apart_by_their_order():
    a, b = matched(heads("i/ j/ j/i/ j"), heads("i/ j/ j/i/ j"))
    assert a == b and len(set(a)) == 5


def test_loops_round_them_count():
    a, b = matched(heads("i/ k/j/ k"), heads("j/ k/i/ k"))
    assert b == [a[2], a[3], a[0], a[1]]


def test_what_is_there_twice_is_one():
    a, b = matched(heads("i/ j/ k"), heads("i/ j/ j/ k"))
    assert b == [a[0], a[1], a[1], a[2]]
    a, b = matched(heads("i/ j/ j/ k"), heads("i/ j/ k"))
    assert a == [b[0], b[1], b[1], b[2]]


def test_what_is_missing_is_nothing_else():
    a, b = matched(heads("i/ j/k"), heads("i/k"))
    assert b == [a[0], a[2]] and a[1] not in b
    assert matched([], []) == [[], []]


def test_lines_stand_in_loops_with_less_indentation():
    opened = Opened()
    opened.enter(0, "i")
    opened.enter(2, "j")
    assert opened.now == (0, 1)
    opened.close(2)
    assert opened.now == (0,)
    assert loops_of([(0, 1), (), (0,)], [7, 8]) == [(7, 8), (), (7,)]

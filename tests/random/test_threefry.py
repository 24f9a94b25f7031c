"""The blocks are those of the paper's authors, and of a second implementation."""

import blocks
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
from harp.random import streams
from harp.random.threefry import ARRAYS, EXPRESSIONS, INTEGERS, threefry2x32, word
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Operand, evaluate

WORDS = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))

# counter, key, block: the known answers for threefry2x32 with 20 rounds in the authors' library Random123
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def block(key, counter):
    """By each of the arithmetics."""
    pair = threefry2x32(tuple(map(word, key)), tuple(map(word, counter)), EXPRESSIONS)
    found = {tuple(int(evaluate(e, None)) for e in pair), threefry2x32(key, counter, INTEGERS)}
    arrays = threefry2x32(tuple(map(ARRAYS.word, key)), tuple(map(ARRAYS.word, counter)), ARRAYS)
    assert all(a.dtype == np.uint32 for a in arrays)
    found.add(tuple(int(a[0]) for a in arrays))
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter, key, expected):
    assert block(key, counter) == expected
    assert tuple(map(int, blocks.threefry(key, counter))) == expected


@settings(max_examples=30)
@given(key=WORDS, counter=WORDS)
def test_the_second_implementation_agrees(key, counter):
    assert block(key, counter) == tuple(map(int, blocks.threefry(key, counter)))


def test_a_known_answer_is_drawn():
    """The key and the counter of zeros: the first element of an array."""
    assert harp.random.bits(np.zeros(2, np.uint32), 1).tolist() == [0x6B200159]
    assert harp.random.bits(np.zeros(2, np.uint32), 1, "uint64").tolist() == [0x6B20015999BA4EFE]


@settings(max_examples=50)
@given(key=WORDS, number=st.integers(0, 2**48 - 1), lane=st.integers(0, 2**14 - 1))
def test_lanes_and_positions_share_no_block(key, number, lane):
    drawn = streams.block(tuple(map(word, key)), Operand(i64, 0), lane << 16)
    values = tuple(int(evaluate(e, lambda leaf: np.asarray(number))) for e in drawn)
    assert values == block(key, ((lane << 16) + (number >> 32), number % 2**32))

"""`signature=`: what may be declared, and which arguments it is about."""

from __future__ import annotations

import numpy as np
import pytest

import harp
from harp import errors


@pytest.mark.parametrize(
    ("signature", "match"),
    [
        (("f4[3]",), "entry 0"),
        ((None, {"w": 3}), "entry 1"),
        ((np.float32,), "entry 0"),
        (5, "tuple"),
        ("f4", "tuple"),
        ((None, None, None), "3 entries"),
    ],
)
def test_what_is_no_signature(signature, match):
    with pytest.raises(errors.ArgumentError, match=match) as caught:
        harp.jit(lambda x, y: x, signature=signature)
    assert __file__ in str(caught.value)


def test_one_signature_stands_for_itself():
    f = harp.jit(lambda x: x + 1, signature=harp.f64["n", 3])
    assert f(np.ones((2, 3))).shape == (2, 3)
    with pytest.raises(errors.SignatureError):
        f(np.ones((2, 4)))


def test_static_arguments_have_an_entry_too():
    def f(x, times, y):
        return x * times + y

    declared = (harp.f64["n"], None, harp.f64["n"])
    for options in ({"static_argnums": 1}, {"static_argnames": "times"}):
        g = harp.jit(f, signature=declared, **options)
        assert g(np.ones(2), 3, np.ones(2)).tolist() == [4.0, 4.0]
        assert g(np.ones(2), times=3, y=np.ones(2)).tolist() == [4.0, 4.0]
        with pytest.raises(errors.SignatureError, match="argument y"):
            g(np.ones(1), 3, np.ones(2))
        with pytest.raises(errors.ArgumentError, match="times is static"):
            harp.jit(f, signature=(None, harp.i64[()], None), **options)


def test_entries_are_found_by_name():
    f = harp.jit(lambda x, *, y: x + y, signature=(harp.f64[2], harp.f64["n"]))
    assert f(y=np.ones(2), x=np.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(errors.SignatureError, match="argument x"):
        f(y=np.ones(2), x=np.ones(3))


def test_trees_and_what_is_not_declared():
    f = harp.jit(lambda p, x: p["w"] @ x + p["b"], signature=({"w": harp.f64["n", 3], "b": None}, None))
    assert f({"w": np.ones((2, 3)), "b": 1.0}, np.ones(3)).tolist() == [4.0, 4.0]
    anything = harp.jit(lambda p, x: p["w"] @ x + p["b"], signature=(None, harp.f64[3]))  # a tree of two arrays
    assert anything({"w": np.ones((2, 3)), "b": 1.0}, np.ones(3)).tolist() == [4.0, 4.0]
    with pytest.raises(errors.SignatureError, match="2 signatures, but has 1"):
        f({"w": np.ones((2, 3))}, np.ones(3))


def test_wrong_number_of_arguments():
    f = harp.jit(lambda x, y=1.0: x + y, signature=(harp.f64["n"], harp.f64[()]))
    with pytest.raises(errors.SignatureError, match="y is declared"):
        f(np.ones(3))
    g = harp.jit(lambda x, y=1.0: x + y, signature=(harp.f64["n"],))
    assert g(np.ones(3)).tolist() == [2.0] * 3
    with pytest.raises(errors.SignatureError, match="2 arguments"):
        g(np.ones(3), 1.0)

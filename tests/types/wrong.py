"""Mistakes that type checkers find: each line that ends in a comment, and no other."""

import harp
import harp.numpy as hnp


@harp.jit
def double(x: harp.Array) -> harp.Array:
    return x * 2


def shifted(x: harp.Array, by: float) -> harp.Array:
    return x + by


def mistakes() -> None:
    hnp.concatenat([hnp.ones(2)])  # error
    hnp.linalg.nothing(hnp.ones((2, 2)))  # error
    hnp.ones(2).nothing()  # error
    text: str = double(hnp.ones(2))  # error
    double(object())  # error
    number: int = harp.vmap(shifted)(hnp.ones(2), 1.0)  # error
    harp.value_and_grad(shifted)(hnp.ones(()), 1.0)[0].nothing  # error
    harp.grad(3)  # error
    harp.jit(double, statik_argnums=0)  # error
    double([1.0, 2.0])

"""Mistakes that type checkers find: each line that ends in a comment, and no other."""

from dataclasses import dataclass

import harp
import harp.numpy as hnp


@harp.jit
def double(x: harp.Array) -> harp.Array:
    return x * 2


def shifted(x: harp.Array, by: float) -> harp.Array:
    return x + by


@harp.tree.register
@dataclass
class Line:
    slope: harp.Array


@harp.jit(static_argnames="n")
def power(x: harp.Array, n: int) -> harp.Array:
    return x**n


class Model:
    @harp.jit(static_argnums=0)
    def scaled(self, x: harp.Array) -> harp.Array:
        return x * 2


def mistakes() -> None:
    power(hnp.ones(2), "a")  # error
    power(hnp.ones(2), n="a")  # error
    Model().scaled(object())  # error
    Model().scaled("a")  # error
    Line(hnp.ones(2)).nothing  # error
    Line("a")  # error
    hnp.sum([1, 2])  # error
    hnp.argmax("a")  # error
    hnp.sum(hnp.ones(2), axis="a")  # error
    hnp.sort(hnp.ones(2), axis="a")  # error
    hnp.concatenate([hnp.ones(2)], axis="a")  # error
    hnp.sum(hnp.ones(2), axes=0)  # error
    hnp.ones(2).sum(axis="a")  # error
    hnp.ones(2).mean(0, None, "yes")  # error
    hnp.ones(2).argmax(axes=0)  # error
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

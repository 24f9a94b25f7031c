"""What the special functions are written with: real expressions in float64, which become functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter, Signature

from harp.numpy.elementwise import float_map
from harp.trace.array.array import Array, marked
from harp.trace.array.primitives import as_array, common_dtype, map_
from harp.trace.scalar.dtypes import complex_of, f64, inexact
from harp.trace.scalar.expr import Expr, apply, cast, const, select
from harp.trace.scalar.ops import Op
from harp.transforms.autodiff.custom import custom_jvp


def number(value: float) -> Expr:
    """A number of float64."""
    return const(value, f64)


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """By Horner's rule, the coefficient of the highest power first."""
    value = number(coefficients[0])
    for c in coefficients[1:]:
        value = value * x + c
    return value


def in_double(build: Callable[..., Expr], *values: object) -> Array:
    """A function of elements that is computed in float64 and rounded once. Raises DTypeError for complex numbers."""
    return float_map(lambda *given: cast(build(*(cast(a, f64) for a in given)), given[0].dtype), *values)


def named(
    name: str, parameters: str, function: Callable[..., Array], text: str, given: str, result: str
) -> Callable[..., Array]:
    """A function of arrays with a name, a signature, and a docstring of a text and an example."""

    def call(*values: object) -> Array:
        return function(*signature.bind(*values).args)

    each = [Parameter(p, Parameter.POSITIONAL_ONLY) for p in parameters.split()]
    call.__signature__ = signature = Signature(each, return_annotation="Array")  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{text}\n\n>>> from harp.scipy import special\n>>> special.{name}({given})\nArray({result})"
    return call


def mapped(
    name: str, parameters: str, build: Callable[..., Expr], text: str, given: str, result: str
) -> Callable[..., Array]:
    """A function of elements that is computed in float64."""
    return named(name, parameters, partial(in_double, build), text, given, result)


def with_slope(build: Callable[[Expr], Expr], slope: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of elements that is computed in float64, and its derivative, which takes less time than the derivative
    of the formula. A difference of two functions is none: where it is small it is not as accurate."""
    function = custom_jvp(lambda x: in_double(build, x))
    function.defjvps(lambda t, _, x: t * slope(x))
    return function


def of_doubles(function: Callable[..., Array], *values: object) -> Array:
    """A function of arrays that is computed in float64 and rounded once. Raises DTypeError for complex numbers."""
    dtype, weak = common_dtype(values)
    arrays = (marked(map_(lambda a: a, as_array(value), to=f64), False) for value in values)
    return marked(map_(lambda a: a, function(*arrays), to=inexact(dtype)), weak)


def parts_of_doubles(function: Callable[..., tuple[Array, ...]], *values: object) -> tuple[Array, ...]:
    """As `of_doubles`, for a function with several results."""
    dtype, weak = common_dtype(values)
    arrays = (marked(map_(lambda a: a, as_array(value), to=f64), False) for value in values)
    return tuple(marked(map_(lambda a: a, found, to=inexact(dtype)), weak) for found in function(*arrays))


def of_complex(build: Callable[[Expr, Expr], tuple[Expr, Expr]], value: object) -> Array:
    """A function of complex elements, by their parts, that is computed in float64 and rounded once."""
    dtype, weak = common_dtype((value,))

    def whole(z: Expr) -> Expr:
        parts = build(*(cast(apply(op, z), f64) for op in (Op.REAL, Op.IMAG)))
        return cast(apply(Op.COMPLEX, *parts), z.dtype)

    return marked(map_(whole, value, to=complex_of(inexact(dtype))), weak)


def log1p_ratio(x: Expr, terms: int = 18) -> Expr:
    """(log(1 + x) - x) / x**2, for -1/2 <= x <= 1; for |x| <= 0.3, 12 terms are enough.

    log(1 + x) is 2 atanh(r) for r = x / (2 + x), by the series of atanh.
    """
    inverse = apply(Op.RECIP, 2 + x)
    r = x * inverse
    series = polynomial(r * r, [1 / (2 * k + 3) for k in reversed(range(terms))])
    return inverse * (2 * r * inverse * series - 1)


def log_less(x: Expr, quotient: Expr) -> Expr:
    """log(1 + x) - x, where 1 + x is a quotient that is known to all digits."""
    near = ~(x < -0.5) & (x < 1)
    small, large = select(near, x, number(0)), select(near, number(1), quotient)
    return select(near, small * small * log1p_ratio(small), apply(Op.LOG, large) - x)

"""Solving index equations p(i) = j for the loops i, exactly, in mixed-radix digits.

1. A loop that occurs as num // c with a chain of divisors c becomes digits, so that all equations are affine.
2. An equation s*u + v = j with 0 <= v < s gives u = j // s, and v = j % s goes on. For a longer v, as the element of a
   window with stride s, v is s*w + j % s and u is j // s - w, for an unknown w. Where there is neither, one affine
   unknown is solved: u = (j - rest) // s, if that comes out even. Every solution must lie in its range.
3. Unknowns that are left are free: all their values solve the equations.

Divisors: inside the loops of the view they are >= 1, but the solution is used inside other loops, so `s >= 1` is one
of its conditions unless it is certain there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import attrs

from harp.trace.index.bounds import divmod_polynomial, exact_quotient, nonnegative
from harp.trace.index.division import Substitution, ceildiv, floordiv
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    FloorDiv,
    Index,
    Loop,
    Relu,
    Shape,
    children,
    loop,
    loops_in,
    of,
    split_linear,
    value_atoms,
)

# Splitting into digits ends after a few rounds; a map that needs more is abandoned.
_ROUNDS = 16
_UNKNOWN_LENGTH = 1 << 62  # longer than any that is known

Rank = tuple[bool, bool, int]  # what to prefer among several unknowns: the smallest


class Unsolvable(Exception):
    """The equations are not affine in mixed-radix digits."""


@attrs.frozen
class Solution:
    """The loops of the view as expressions of the targets' loops and of the unknowns, valid where conditions >= 0."""

    index: tuple[Index, ...]
    conditions: tuple[Index, ...]
    unknowns: tuple[Loop, ...]


@attrs.define
class _System:
    """What is left to solve. Unknowns have axis numbers that no target has."""

    equations: list[tuple[Index, Index]]  # (p, target): p == target
    index: list[Index]
    conditions: list[Index]
    unknowns: dict[Loop, None]
    shape: Shape  # of the view: inside its loops these are >= 1
    running: Shape  # of the targets: where the solution is used these are >= 1
    numbers: count[int]

    def substitute(self, mapping: Mapping[Atom, Index]) -> None:
        replace = Substitution(mapping)
        self.equations = [(replace(p), replace(target)) for p, target in self.equations]
        self.index = list(replace.each(tuple(self.index)))
        self.conditions = list(replace.each(tuple(self.conditions)))

    def new_unknown(self, extent: Index) -> Index:
        position = loop(next(self.numbers), extent)
        if isinstance(position.atom, Loop):
            self.unknowns[position.atom] = None
        return position

    def set(self, unknown: Loop, value: Index) -> None:
        """The unknown is `value`, which must lie in its range."""
        del self.unknowns[unknown]
        self.conditions += [value, unknown.extent - 1 - value]
        self.substitute({unknown: value})

    def in_(self, p: Index) -> list[Loop]:
        return sorted((a for a in loops_in(p) if a in self.unknowns), key=lambda a: a.key)

    def positive(self, p: Index) -> bool:
        """Whether p >= 1 inside the view's loops."""
        return positive_inside(p, self.shape)

    def require_positive(self, p: Index) -> None:
        """A divisor is at least 1 where the solution is used: a condition, unless that is certain there."""
        if not positive_inside(p, self.running):
            self.conditions.append(p - 1)


def positive_inside(p: Index, extents: Shape) -> bool:
    """Whether p >= 1 where loops of these extents run: a factor of an extent is."""
    if nonnegative(p - 1):
        return True
    return (
        p is not ZERO
        and nonnegative(p)
        and any(exact_quotient(extent, p) is not None for extent in extents if extent is not ZERO)
    )


def certain(p: Index) -> bool:
    """Whether p >= 0 is certain. A division is taken at the end of its loops that makes `p` smallest.

    That is finer than the bounds of the division as a fraction: i < m*k gives i // k <= (m*k - 1) // k, which is m - 1.
    """
    if nonnegative(p):
        return True
    for monomial, _ in p.terms:
        for atom in monomial:
            parts = split_linear(p, atom) if isinstance(atom, FloorDiv) else None
            if isinstance(atom, FloorDiv) and parts is not None and loops_in(atom.num) and not loops_in(atom.den):
                slope, rest = parts
                bounds = _ends(atom.num, loops_in(atom.num))
                if bounds is not None and (nonnegative(slope) or nonnegative(-slope)):
                    least = nonnegative(slope)
                    bound = floordiv(bounds[0], atom.den) if least else _quotient_at_most(bounds[1], atom.den)
                    return certain(slope * bound + rest)
    return False


def _quotient_at_most(a: Index, b: Index) -> Index:
    """(q*b + r) // b <= q - 1, where r < 0 and b >= 1."""
    quotient, rest = divmod_polynomial(a, b)
    return quotient - 1 if nonnegative(-rest - 1) else floordiv(a, b)


def _ends(p: Index, loops: Iterable[Loop]) -> tuple[Index, Index] | None:
    """The smallest and the largest value of an affine expression over these loops; None where it is not affine."""
    low = high = p
    loops = sorted(loops, key=lambda a: a.key)
    for found in loops:
        parts = split_linear(p, found)
        if parts is None or any(other in loops for other in loops_in(parts[0])):
            return None
        slope, last = parts[0], found.extent - 1
        if not (nonnegative(slope) or nonnegative(-slope)):
            return None
        first, other_end = (ZERO, last) if nonnegative(slope) else (last, ZERO)
        low, high = low + slope * first, high + slope * other_end
        low, high = (q - slope * of(found) for q in (low, high))
    return low, high


def solve(index: Sequence[Index], targets: Sequence[Index], shape: Shape, running: Shape) -> Solution:
    """Solve index[k](loops of shape) == targets[k]; the targets lie in loops of the extents `running`.

    Raises Unsolvable.
    """
    numbers = count(len(targets))
    system = _System([], list(_loops(shape)), [], {}, shape, running, numbers)
    fresh: dict[Atom, Index] = {}
    for axis, extent in enumerate(shape):
        fresh[Loop(axis, extent)] = system.new_unknown(extent)
    replace = Substitution(fresh)
    system.index = list(replace.each(tuple(system.index)))
    system.equations = [(replace(p), target) for p, target in zip(index, targets, strict=True)]
    _make_affine(system)
    while _solve_step(system):
        pass
    conditions = tuple(dict.fromkeys(c for c in system.conditions if not certain(c)))
    return Solution(tuple(system.index), conditions, tuple(system.unknowns))


def _loops(shape: Shape) -> tuple[Index, ...]:
    return tuple(loop(axis, extent) for axis, extent in enumerate(shape))


# -- step 1: digits -----------------------------------------------------------------------------------------------


def _make_affine(system: _System) -> None:
    for _ in range(_ROUNDS):
        divisions = _divisions(system)
        if not divisions:
            return
        _split(system, divisions)
    raise Unsolvable


def _divisions(system: _System) -> list[FloorDiv]:
    """The divisions of one affine numerator, smallest divisor first, each divisor a multiple of the one before."""
    found: dict[FloorDiv, None] = {}
    for p, _ in system.equations:
        for atom in value_atoms(p):
            if not isinstance(atom, (FloorDiv, Relu)) or not any(system.in_(q) for q in children(atom)):
                continue
            if isinstance(atom, Relu) or system.in_(atom.den):
                raise Unsolvable
            found[atom] = None
    affine = [d for d in found if not any(inner in found for inner in value_atoms(d.num))]
    if not affine:
        return []
    num = min((d.num for d in affine), key=lambda p: p.key)
    chain: list[FloorDiv] = []
    rest = [d for d in affine if d.num is num]
    while rest:
        smallest = [d for d in rest if all(exact_quotient(o.den, d.den) is not None for o in rest)]
        if not smallest:
            raise Unsolvable
        chain.append(smallest[0])
        rest.remove(smallest[0])
    return chain


def _split(system: _System, chain: list[FloorDiv]) -> None:
    """num = base + d0 + c1*d1 + c2*d2 + ...: the digits replace the divisions and one loop of the numerator."""
    num, dens = chain[0].num, [d.den for d in chain]
    ends = _ends(num, system.in_(num))
    if ends is None:
        raise Unsolvable
    low, high = ends
    base = ZERO if nonnegative(low) else floordiv(low, dens[-1]) * dens[-1]
    radices = [ONE, *dens]
    digits = []
    for k, weight in enumerate(radices):
        last = k + 1 == len(radices)
        whole = high - base + 1 if last else radices[k + 1]
        extent = exact_quotient(whole, weight) or ceildiv(whole, weight)
        digits.append(system.new_unknown(extent))
    mapping: dict[Atom, Index] = {}
    for k, division in enumerate(chain):
        total = ZERO if base is ZERO else floordiv(low, dens[-1]) * _exact(dens[-1], dens[k])
        for weight, digit in zip(radices[k + 1 :], digits[k + 1 :], strict=True):
            total = total + _exact(weight, dens[k]) * digit
        mapping[division] = total
    value = base + sum((w * d for w, d in zip(radices, digits, strict=True)), ZERO)
    unknown, slope, others = _pivot(system, num)
    _replace_multiple(system, unknown, slope, value - others, mapping)


def _exact(a: Index, b: Index) -> Index:
    quotient = exact_quotient(a, b)
    if quotient is None:
        raise Unsolvable
    return quotient


def _pivot(system: _System, num: Index) -> tuple[Loop, Index, Index]:
    """The loop of the numerator that the digits replace: num == slope * unknown + others."""
    choices: list[tuple[Rank, Loop, Index, Index]] = []
    for unknown in system.in_(num):
        slope, others = _linear(num, unknown)
        if system.positive(slope):
            rank = slope is not ONE, unknown.extent.constant is not None, len(choices)
            choices.append((rank, unknown, slope, others))
    if not choices:
        raise Unsolvable
    return min(choices, key=lambda choice: choice[0])[1:]


def _linear(p: Index, unknown: Loop) -> tuple[Index, Index]:
    parts = split_linear(p, unknown)
    if parts is None:
        raise Unsolvable
    return parts


def _replace_multiple(
    system: _System, unknown: Loop, slope: Index, multiple: Index, divisions: Mapping[Atom, Index]
) -> None:
    """slope * unknown is `multiple`: exact in the equations, where only multiples of `slope` may occur."""
    replace = Substitution({**divisions, unknown: multiple} if slope is ONE else divisions)
    equations = []
    for p, target in system.equations:
        if slope is ONE:
            equations.append((replace(p), target))
            continue
        factor, rest = _linear(replace(p), unknown)
        equations.append((_exact(factor, slope) * multiple + rest if factor is not ZERO else rest, target))
    system.equations = equations
    _divide(system, unknown, slope, multiple)


def _divide(system: _System, unknown: Loop, slope: Index, multiple: Index) -> None:
    """unknown := multiple // slope, if that comes out even."""
    value = floordiv(multiple, slope)
    system.require_positive(slope)
    remainder = multiple - slope * value
    system.conditions += [remainder, -remainder]
    system.set(unknown, value)


# -- step 2: affine equations -------------------------------------------------------------------------------------


def _solve_step(system: _System) -> bool:
    """Solve for one unknown, or turn an equation without one into conditions; False when all is done."""
    for k, (p, target) in enumerate(system.equations):
        if not system.in_(p):
            difference = p - target
            del system.equations[k]
            system.conditions += [difference, -difference]
            return True
    if not system.equations:
        return False
    return any(_take_digit(system, k) for k in range(len(system.equations))) or _take_affine(system)


def _take_digit(system: _System, k: int) -> bool:
    """s*u + v = j  ->  u = j // s, v = j % s, where 0 <= v < s; v counts from its smallest value."""
    p, target = system.equations[k]
    for unknown in system.in_(p):
        slope, others = _linear(p, unknown)
        if system.in_(slope):
            raise Unsolvable
        mirrored = not nonnegative(slope)
        step = -slope if mirrored else slope
        if not system.positive(step) and not system.in_(others):
            continue
        last = unknown.extent - 1
        others = others + slope * last if mirrored else others
        ends = _ends(others, system.in_(others))
        if ends is None:
            continue
        low = ends[0]
        if not nonnegative(step) or not nonnegative(step - 1 - (others - low)):
            continue
        quotient = floordiv(target - low, step)
        system.require_positive(step)
        system.equations[k] = others - low, target - low - step * quotient
        system.set(unknown, last - quotient if mirrored else quotient)
        return True
    return False


def _length(unknown: Loop) -> int:
    constant = unknown.extent.constant
    return _UNKNOWN_LENGTH if constant is None else constant


def _take_affine(system: _System) -> bool:
    """s*u + rest = j  ->  u = (j - rest) // s, if that comes out even: the longest loop, or the first one of unknown
    length, so that of windows along an axis, whose elements have the later axis, these elements are left."""
    choices: list[tuple[tuple[int, int, int], int, Loop, Index, Index]] = []
    for k, (p, target) in enumerate(system.equations):
        for unknown in system.in_(p):
            slope, rest = _linear(p, unknown)
            for sign in (ONE, -ONE):
                if system.positive(sign * slope):
                    step, multiple = sign * slope, sign * (target - rest)
                    rank = -_length(unknown), unknown.axis, len(choices)
                    choices.append((rank, k, unknown, step, multiple))
    if not choices:
        raise Unsolvable
    _, k, unknown, step, multiple = min(choices, key=lambda choice: choice[0])
    del system.equations[k]
    if step is ONE or not _take_residue(system, unknown, step, multiple):
        _divide(system, unknown, step, multiple)
    return True


def _take_residue(system: _System, unknown: Loop, step: Index, multiple: Index) -> bool:
    """s*u = e - v  ->  v = s*w + e % s, u = e // s - w, and s*u = e + v  ->  v = s*w + -e % s, u = w - (-e // s): for
    each target, one of s places within the elements of a window is there, so the others are not asked for."""
    others = system.in_(multiple)
    if len(others) != 1 or any(others[0] in loops_in(p) for p, _ in system.equations):
        return False
    (other,) = others
    slope, target = _linear(multiple, other)
    if slope not in (ONE, -ONE):
        return False
    target = -slope * target
    quotient = floordiv(target, step)
    system.require_positive(step)
    w = system.new_unknown(ceildiv(other.extent, step))
    system.set(other, step * w + target - step * quotient)
    system.set(unknown, slope * (w - quotient))
    return True

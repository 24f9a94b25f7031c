"""Double buffering: arrays that are exchanged after each iteration are swapped as pointers, and copied back at the end.

repeat t < n { (a -> b); a, b = b, a }
    ->  double *at_a = a, *at_b = b;
        for (...) { double *restrict now0 = at_a, *restrict now1 = at_b; ...; at_a = now1; at_b = now0; }
        if (at_a != a) memcpy(a, at_a, ...);
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harp.lower.loopir.loops import Buffer

Moves = Sequence[tuple[Buffer, Buffer]]


def members(moves: Moves) -> tuple[Buffer, ...]:
    """The arrays that are exchanged."""
    return tuple(dict.fromkeys(buffer for move in moves for buffer in move))


def exchanged(moves: Moves, now: Mapping[Buffer, str], at: Mapping[Buffer, str]) -> Iterator[str]:
    """The end of an iteration with the pointers `now`: the variables `at` get those of the next one."""
    places = {buffer: now[buffer] for buffer in members(moves)}
    for target, source in moves:
        places[target], places[source] = places[source], places[target]
    for buffer, place in places.items():
        yield f"{at[buffer]} = {place};"


def settled(moves: Moves, at: Mapping[Buffer, str], home: Mapping[Buffer, str], size: str) -> Iterator[str]:
    """Copy each array that is elsewhere back to its own memory, `size` bytes, after the last iteration.

    A chain has one target, or two that share a third buffer. Each of two targets may be in the memory of the other one
    or in the third buffer, but the memory of one is free, or holds its own array. So one of the two first tests is
    passed, and then the memory of the other one is free.
    """
    targets = tuple(dict.fromkeys(target for target, _ in moves))
    for target in targets:
        yield f"if ({at[target]} != {home[target]}{_free(target, targets, at, home)}) {{"
        yield f"    __builtin_memcpy({home[target]}, {at[target]}, {size});"
        yield f"    {at[target]} = {home[target]};"
        yield "}"
    for target in targets[:-1]:
        yield f"if ({at[target]} != {home[target]}) __builtin_memcpy({home[target]}, {at[target]}, {size});"


def _free(target: Buffer, targets: Sequence[Buffer], at: Mapping[Buffer, str], home: Mapping[Buffer, str]) -> str:
    """The test that no other target is in this one's memory."""
    return "".join(f" && {at[other]} != {home[target]}" for other in targets if other is not target)


def chains(moves: Moves) -> list[Moves]:
    """The moves, grouped by the arrays that they share."""
    groups: list[list[tuple[Buffer, Buffer]]] = []
    for move in moves:
        meeting = [group for group in groups if set(members(group)) & set(move)]
        groups = [group for group in groups if group not in meeting]
        groups.append([m for group in meeting for m in group] + [move])
    return [tuple(group) for group in groups]

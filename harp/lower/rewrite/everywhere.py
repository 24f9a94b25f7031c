"""How the rules for loop nests are applied: to the outermost statements that they fit."""

from __future__ import annotations

from collections.abc import Callable

from harp.lower.loopir.loops import Stmt
from harp.lower.loopir.nests import is_plain, is_sequential, is_unrolled, rebuilt
from harp.lower.rewrite.strip_mining import Context

Rule = Callable[[Context, Stmt], Stmt | None]  # None where it does not fit


def everywhere(context: Context, rule: Rule, s: Stmt) -> Stmt:
    """The statement, with the rule applied to the outermost parts that it fits."""
    if is_plain(s):
        return _in_plain(context, rule, s)
    return rebuilt(s, lambda part: everywhere(context, rule, part))


def _in_plain(context: Context, rule: Rule, s: Stmt) -> Stmt:
    """The same in a plain statement, all of whose parts are plain."""
    found = None if is_sequential(s) or is_unrolled(s) else rule(context, s)
    return found if found is not None else rebuilt(s, lambda part: _in_plain(context, rule, part))

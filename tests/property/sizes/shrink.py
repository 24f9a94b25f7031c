"""Makes a case smaller as long as the same kind of finding stays: fewer calls, statements, results, smaller sizes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from .case import Case, Statement, uses

Fails = Callable[[Case], bool]

# Text -> simpler text, tried at every place of a statement.
SIMPLER = (
    (r"\(?[\w.\[\]-]+(?:, \d+)?\)? (?://|%|\*|\+|-|>>|<<|&|\*\*) ", ""),  # the left operand of an arithmetic
    (r" (?://|%|\*|\+|-|>>|<<|&|\*\*) [\w.\[\]-]+", ""),  # the right one
    (r"^if .*:\n    (.*)\n(?:.*\n)*?else:\n    .*$", r"\1"),
    (r"^if .*:\n    .*\n(?:.*\n)*?else:\n    (.*)$", r"\1"),
    (r"^try:\n    (.*)\n(?:.*\n?)*$", r"\1"),
    (r"elif .*:\n    .*\n", ""),
    (r"\b(?:min|max)\(([^(),]+), [^(),]+\)", r"\1"),
    (r"\babs\(([^()]+)\)", r"\1"),
    (r"-?\b[2-9]\b", "1"),
    (r"-?\b[1-9]\b", "0"),
    (r"\.shape\[-1\]", ".shape[0]"),
    (r"\b(\w+)\.size\b", r"\1.shape[0]"),
)


def shrink(case: Case, fails: Fails, seconds: float = 60.0) -> Case:
    """The smallest case found, of those that fail as this one does."""
    end = time.monotonic() + seconds
    better: Case | None = case
    while better is not None and time.monotonic() < end:
        case, better = better, None
        for smaller in _smaller(case):
            if time.monotonic() > end:
                break
            if _is_complete(smaller) and fails(smaller):
                better = smaller
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    yield from _fewer_calls(case)
    yield from _fewer_statements(case)
    yield from _fewer_results(case)
    yield from _fewer_arguments(case)
    yield from _simpler_statements(case)
    yield from _smaller_sizes(case)


def _fewer_calls(case: Case) -> Iterator[Case]:
    count = len(case.calls)
    for size in (count // 2, count // 4, 1):
        for start in range(0, count, size) if size else ():
            yield case._replace(calls=case.calls[:start] + case.calls[start + size :])
    for k, call in enumerate(case.calls):
        for simple in (call._replace(named=False), call._replace(flag=0)):
            if simple != call:
                yield case._replace(calls=(*case.calls[:k], simple, *case.calls[k + 1 :]))


def _fewer_statements(case: Case) -> Iterator[Case]:
    """Without one of the statements; an earlier value of its kind stands for its own."""
    kinds = case.kinds()
    for k in reversed(range(len(case.statements))):
        rest = case.statements[:k] + case.statements[k + 1 :]
        target = case.statements[k].target
        returned = tuple(name for name in case.returned if name != target)
        yield case._replace(statements=rest, returned=returned)
        for name in [a.name for a in case.arguments] + [s.target for s in case.statements[:k]]:
            if kinds[name] == kinds[target]:
                renamed = tuple(s._replace(text=re.sub(rf"\b{target}\b", name, s.text)) for s in rest)
                yield case._replace(statements=renamed, returned=tuple(dict.fromkeys([*returned, name])))


def _fewer_results(case: Case) -> Iterator[Case]:
    for name in case.returned:
        yield case._replace(returned=tuple(other for other in case.returned if other != name))


def _fewer_arguments(case: Case) -> Iterator[Case]:
    for k, argument in enumerate(case.arguments):
        if len(case.arguments) > 1 and not any(uses(s.text, argument.name) for s in case.statements):
            calls = tuple(c._replace(shapes=c.shapes[:k] + c.shapes[k + 1 :]) for c in case.calls)
            yield case._replace(arguments=case.arguments[:k] + case.arguments[k + 1 :], calls=calls)


def _simpler_statements(case: Case) -> Iterator[Case]:
    for k, statement in enumerate(case.statements):
        for text in _simpler_texts(statement):
            yield case._replace(
                statements=(*case.statements[:k], statement._replace(text=text), *case.statements[k + 1 :])
            )


def _simpler_texts(statement: Statement) -> Iterator[str]:
    for pattern, simple in SIMPLER:
        for match in re.finditer(pattern, statement.text):
            text = statement.text[: match.start()] + match.expand(simple) + statement.text[match.end() :]
            balanced = match[0].count("(") == match[0].count(")")
            if balanced and text != statement.text:
                yield text


def _smaller_sizes(case: Case) -> Iterator[Case]:
    """One size of one call, or one size wherever it occurs."""
    sizes = sorted({n for c in case.calls for shape in c.shapes for n in shape}, reverse=True)
    for old in sizes:
        for new in range(min(old, 4)):
            calls = tuple(
                c._replace(shapes=tuple(tuple(new if n == old else n for n in shape) for shape in c.shapes))
                for c in case.calls
            )
            yield case._replace(calls=calls)
    for k, call in enumerate(case.calls):
        for i, shape in enumerate(call.shapes):
            for j, old in enumerate(shape):
                for new in range(min(old, 4)):
                    changed = (*shape[:j], new, *shape[j + 1 :])
                    one = call._replace(shapes=(*call.shapes[:i], changed, *call.shapes[i + 1 :]))
                    yield case._replace(calls=(*case.calls[:k], one, *case.calls[k + 1 :]))


def _is_complete(case: Case) -> bool:
    """Whether all names are defined before they are used, and the text is Python."""
    if not case.calls or not case.returned:
        return False
    names = {a.name for a in case.arguments} | {"flag"}
    for statement in case.statements:
        used = set(re.findall(r"\b(?:[abc]|v\d+)\b", statement.text))
        if not used <= names | {statement.target}:
            return False
        names.add(statement.target)
    try:
        compile(case.source, "", "exec")
    except (SyntaxError, ValueError):
        return False
    return set(case.returned) <= names

"""Which expression of the user asks for the numbers of a traced array, or makes float64 of float32, and what to write
instead.

Python knows where in the source the running instruction stands, so a message can quote the expression and name the
function that was called. Where there is no source the message does without.
"""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Mapping, Sequence
from types import FrameType, ModuleType
from typing import NamedTuple

import numpy as np

from harp.lazy import FUNCTIONS
from harp.trace.graph.node import Constant, Input, Node, walk
from harp.trace.scalar.dtypes import DType, c64, c128, f32, f64, promote
from harp.trace.sizes.levels import Level
from harp.trace.source_locations import Site, position, running_text, shown, user_frame, user_site, where

TRUTH, INTEGER, TEXT = "a truth value", "a Python integer", "the text of the numbers"
ELEMENT, VALUES, LIST = "a Python number", "the numbers", "a list of the numbers"
PICKLED = "a pickle"

MAKE_STATIC = (
    "make {it} static, with static_argnums or static_argnames of harp.jit, or take it from the shape of an argument"
)
_NUMPY = "use harp.numpy functions instead of NumPy's"
_CHOOSE = (
    "use harp.numpy.where(condition, a, b) or harp.cond instead of `if` on an array, and static_argnums or "
    "static_argnames for arguments that steer Python"
)
_OF_WHAT = {
    TRUTH: _CHOOSE,
    INTEGER: MAKE_STATIC,
    TEXT: 'print the result of the function instead; f"{x}" without a format shows dtype and sizes',
    ELEMENT: "leave .item() out, for an array without axes is computed with like a number, or call it on the result",
    LIST: "return the array, and call .tolist() on the result",
    PICKLED: "return the array, and pickle the result",
}
# What asks for a truth value without being an `if`.
_OF_STATEMENTS = {
    "while": "write the loop as harp.while_loop(condition, step, start), of two functions of what changes in it",
    "assert": "return what must hold as a result, and assert it of the result; or leave the assert out",
}
_BUILTINS: dict[object, str] = {
    float: "leave float() out, or use .astype(float): an array without axes is computed with like a number",
    int: "use .astype(int), or static_argnums or static_argnames of harp.jit if Python needs the number",
    complex: "use .astype(complex)",
    max: "use harp.numpy.maximum(a, b), or harp.numpy.max of an array",
    min: "use harp.numpy.minimum(a, b), or harp.numpy.min of an array",
    any: "use harp.numpy.any",
    all: "use harp.numpy.all",
    sorted: "use harp.numpy.sort",
    range: MAKE_STATIC + "; a loop that data ends is harp.fori_loop(0, {it}, step, start) or harp.while_loop",
}


_VECTORIZED = np.vectorize(abs)
# Errors of others, by what stands in them, and what is added to them.
_NOTES = (
    (
        ("single integer", ", traced)"),
        f"the numbers of traced arrays are not known; {MAKE_STATIC.replace('{it}', 'the size')}",
    ),
    (("must be Tensor, not Array",), "PyTorch computes with its own tensors only; use the function of harp.numpy"),
    (("JAX", "harp.trace.array"), "JAX computes with its own arrays only; use the function of harp.numpy or harp.lax"),
    (
        ("unhashable type: 'Array'",),
        "a traced array is no key, for its numbers are not known; make the argument static, with static_argnums or "
        "static_argnames of harp.jit, or choose by harp.numpy.select or harp.switch",
    ),
)


class Asking(NamedTuple):
    """The expression that runs, its text, its frame, whether an element is being assigned, and the keyword of the
    statement whose condition it is."""

    node: ast.expr
    text: str
    frame: FrameType
    assigns: bool
    keyword: str


def message(what: str, node: Node, function: str) -> str:
    """The error for a question after numbers that are known only when the program runs."""
    found = asking()
    it = node.name if isinstance(node, Input) else "it"
    who = f"`{shown(found.text)}`" if found else "Python"
    return (
        f"{who} asks for {what} of {origin(node)} while {function!r} is traced, where only dtype and sizes of arrays "
        f"are known; {_remedy(what, found).replace('{it}', it)}{where(quoted=found is not None)}"
    )


def note_on(text: str) -> str | None:
    """What to add to a TypeError of Python, or of another library, with this text; None for most."""
    return next((note for parts, note in _NOTES if all(part in text for part in parts)), None)


def origin(node: Node) -> str:
    """What a message calls an array: the argument that it is, or those of which it is computed."""
    if isinstance(node, Input):
        return node.name
    names = list(dict.fromkeys(n.name for n in walk((node,)) if isinstance(n, Input)))
    if not names:
        return "an array"
    shown = names if len(names) < 4 else [*names[:2], "others"]
    last = shown.pop()
    return f"what is computed from {', '.join(shown)} and {last}" if shown else f"what is computed from {last}"


def counterpart(name: str) -> str | None:
    """The name in harp of a function such as "numpy.linalg.det" or "math.sin"; None if there is none."""
    library, _, rest = name.partition(".")
    if library not in ("numpy", "scipy", "math", "cmath"):
        return None
    rest = ".".join(part for part in rest.split(".") if not part.startswith("_"))  # scipy.linalg._basic.solve
    place: object = FUNCTIONS["numpy"]
    for part in rest.split("."):
        place = getattr(place, part, None)
    return f"harp.numpy.{rest}" if callable(place) else None


def asking() -> Asking | None:
    """The expression of the user's code that is being computed, if its source is at hand."""
    frame = user_frame()
    if frame is None:
        return None
    text, keyword = running_text(frame), _keyword(frame)
    if text.startswith("assert "):  # which Python takes for the whole statement
        text, keyword = _condition(text), "assert"
    if not text:
        return None
    try:
        node = ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    assigns = dis.opname[frame.f_code.co_code[frame.f_lasti]] == "STORE_SUBSCR"
    return Asking(node, text, frame, assigns, keyword)


def _keyword(frame: FrameType) -> str:
    """The first word of the line before the expression that a frame computes."""
    number, _, column, _ = position(frame)
    if number is None or column is None:
        return ""
    line = linecache.getline(frame.f_code.co_filename, number, frame.f_globals)
    before = line.encode()[:column].decode(errors="replace").split()  # columns count bytes
    return before[0] if before else ""


def _condition(text: str) -> str:
    """What an assert statement tests."""
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return ""
    found = ast.get_source_segment(text, statement.test) if isinstance(statement, ast.Assert) else None
    return found or ""


def _remedy(what: str, found: Asking | None) -> str:
    advice = _OF_WHAT.get(what, _NUMPY)
    if found is None:
        return advice
    if what == TRUTH:
        advice = _OF_STATEMENTS.get(found.keyword, advice)
    node = found.node
    if found.assigns:
        name = ast.unparse(node.value) if isinstance(node, ast.Subscript) else "x"
        return (
            f"NumPy arrays hold numbers only: make it an array of harp, {name} = harp.numpy.asarray({name}), and write "
            f"{name} = {name}.at[index].set(value)"
        )
    if isinstance(node, ast.Call):
        called = _called(node, found.frame, what)
        return advice if called is None else called
    if isinstance(node, ast.Subscript):
        return _of_subscript(node)
    if isinstance(node, ast.BinOp) and what == VALUES:
        return "make an array of harp of the other operand: harp.numpy.asarray, after .toarray() if it is sparse"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):  # "%f" % x: no operator of arrays asks
        return _OF_WHAT[TEXT]
    return _of_condition(node, advice) if what == TRUTH else advice


def _of_subscript(node: ast.Subscript) -> str:
    keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if any(isinstance(key, ast.Slice) for key in keys):
        return (
            "the length of a slice must be known: use harp.lax.dynamic_slice_in_dim(x, start, length), or "
            "harp.numpy.where with a condition on harp.numpy.arange"
        )
    name = ast.unparse(node.value)
    return f"make an array of harp of what is indexed: harp.numpy.asarray({name})[index]"


def _of_condition(node: ast.expr, otherwise: str) -> str:
    if isinstance(node, ast.BoolOp):
        return f"use & and | on conditions instead of `and` and `or`, with parentheses; {otherwise}"
    if isinstance(node, ast.UnaryOp):
        return f"use ~ or harp.numpy.logical_not instead of `not`; {otherwise}"
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return "use harp.numpy.any(x == value) or harp.numpy.isin instead of `in`"
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return f"write (a < x) & (x < b) instead of a < x < b; {otherwise}"
    return otherwise


def _called(node: ast.Call, frame: FrameType, what: str) -> str | None:
    """The remedy for a call, by the function that is called."""
    function, name = _resolved(node.func, frame)
    if what == INTEGER and any(isinstance(part, ast.Div) for part in ast.walk(node)):
        return "divide sizes by //, which makes a size again; / makes a float"
    for builtin, advice in _BUILTINS.items():
        if function is builtin:
            return advice
    if isinstance(function, np.vectorize):
        return "use harp.numpy.vectorize"
    if what == INTEGER or name is None:
        return None
    if isinstance(function, type) and issubclass(function, np.generic):
        return f"use .astype({ast.unparse(node.func)})"
    if name.startswith("numpy.random."):
        return "use harp.random, whose functions take a key"
    there = counterpart(name)
    if there is not None:
        return f"use {there}"
    if name.startswith("scipy."):
        return f"SciPy computes with numbers: call {name} outside of the function, or by harp.pure_callback"
    if name.startswith(("numpy.", "math.", "cmath.")):
        return f"harp.numpy has no {name.partition('.')[2]} yet: call {name} outside of the function"
    return None


def _resolved(node: ast.expr, frame: FrameType) -> tuple[object, str | None]:
    """The object that a dotted name means, without running anything of the user, and its name in its library."""
    if isinstance(node, ast.Name):
        scopes: tuple[Mapping[str, object], ...] = (frame.f_locals, frame.f_globals, frame.f_builtins)
        found = next((scope[node.id] for scope in scopes if node.id in scope), None)
        module, name = getattr(found, "__module__", None), getattr(found, "__name__", type(found).__name__)
        if isinstance(found, ModuleType):
            return found, found.__name__
        return found, f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else None
    if isinstance(node, ast.Call):  # np.vectorize(f)(x): what it returned is not at hand
        made, name = _resolved(node.func, frame)
        return (_VECTORIZED if made is np.vectorize else None), name
    if isinstance(node, ast.Attribute):
        place, name = _resolved(node.value, frame)
        if isinstance(place, ModuleType):
            return getattr(place, node.attr, None), f"{name}.{node.attr}"
    return None, None


NARROW, WIDE = (f32, c64), (f64, c128)


class Operand(NamedTuple):
    """A value that meets others, its dtype, None if it takes theirs, and the node that it is, if it is traced."""

    value: object
    dtype: DType | None
    node: Node | None


def note_promotion(level: Level, operands: Sequence[Operand], common: DType) -> None:
    """Note in the scope of a trace that these operands meet in float64 (or complex128), if one of them is float32 (or
    complex64)."""
    narrow = next((operand.dtype for operand in operands if operand.dtype in NARROW), None)
    wide = next((o for o in operands if o.dtype and o.dtype not in NARROW and promote([f32, o.dtype]) in WIDE), None)
    site = user_site()
    if narrow is None or wide is None or site is None:
        return
    found = asking()
    name = _written(found, operands, wide)
    kind, advice = _described(level, wide, name or "it")
    who = f"`{shown(name)}`, {kind}" if name else kind
    in_what = f" in `{shown(found.text)}`" if found else ""
    text = f"{narrow.numpy} becomes {common.numpy}{in_what}, by {who}; {advice}"
    level.scope.promotion = text, site


def _written(found: Asking | None, operands: Sequence[Operand], one: Operand) -> str | None:
    """One of the operands as the user has written it, where it is found: a side of an operator, or a name."""
    if found is None:
        return None
    if isinstance(found.node, ast.BinOp) and len(operands) == 2:
        return ast.unparse(found.node.left if one is operands[0] else found.node.right)
    frame = found.frame
    for node in ast.walk(found.node):
        if isinstance(node, ast.Name) and frame.f_locals.get(node.id, frame.f_globals.get(node.id)) is one.value:
            return node.id
    return None


def _described(level: Level, operand: Operand, name: str) -> tuple[str, str]:
    """What an operand is, and what to write instead."""
    value, dtype, node = operand
    assert dtype is not None
    kind = f"an array of {dtype.numpy}"
    if isinstance(value, np.generic):
        return f"a number of NumPy, {dtype.numpy}", f"write float({name}), which takes the dtype of what it meets"
    if dtype.is_integer:
        return kind, f"write {name}.astype(harp.numpy.float32), or arange(3.0) for arange(3)"
    if isinstance(node, Input):
        return f"an argument of {dtype.numpy}", f"call the function with {name} as float32"
    if node is None or isinstance(node, Constant):
        return f"{kind} from outside of the function", "convert it once, before the function: .astype(numpy.float32)"
    made = _made_at(level, node)
    place = f" made at {made[0]}:{made[1]}" if made else ""
    return kind + place, "give it dtype=harp.numpy.float32 where it is made, or set harp.default_dtype('float32')"


def _made_at(level: Level | None, node: Node) -> Site | None:
    while level is not None:
        if node in level.sites:
            return level.sites[node]
        level = level.parent
    return None

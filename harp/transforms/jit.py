"""`jit`: trace once, compile once, and run the same machine code for every size.

A call looks up the entries for its tree of arguments, dtypes and ranks; the first whose guards hold for the call's
sizes runs. Where none does, the function is traced with this call as the example, which gives one more entry.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from harp.backends.options import CompileOptions
from harp.config import log
from harp.errors import ArgumentError, SignatureError, StaticArgumentError
from harp.trace.array import Array, from_numpy
from harp.trace.dtypes import ALL, ArraySignature, Buffer
from harp.trace.index import Index
from harp.trace.levels import current
from harp.trace.scope import Scope
from harp.trace.signature import Check, GraphSignature, signature_of
from harp.trace.sites import where
from harp.trace.tracer import (
    Argument,
    declare,
    function_name,
    leaf_array,
    parameter_names,
    size_arguments,
    trace_function,
)
from harp.trace.trees import Tree, TreeSpec, flatten, labels, leaves_or_none, unflatten

if TYPE_CHECKING:
    from harp.transforms.programs import Program, Runner, Stages

_NATIVE = frozenset(d.numpy for d in ALL)


@attrs.frozen(eq=False)
class Entry:
    """One trace of the function: for which sizes it holds, and how to run it."""

    check: Check
    run: Runner
    treedef: TreeSpec
    weak: tuple[bool, ...]
    single: bool  # the result is one array, not a tree
    signature: GraphSignature
    program: Program


class _Call(NamedTuple):
    """A call taken apart: static values, leaves as buffers, and the key under which its entries are found."""

    static: tuple[tuple[int | str, Hashable], ...]
    treedef: TreeSpec
    structure: Hashable  # the treedef, or the number of arguments where each one is a leaf
    arrays: list[tuple[Buffer, bool]]
    names: list[str]


class JitFunction:
    """A compiled function. Made by `jit`; see there."""

    def __init__(
        self,
        function: Callable[..., Tree],
        static_argnums: Iterable[int],
        static_argnames: Iterable[str],
        signature: tuple[Tree, ...] | None,
        options: CompileOptions,
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._static_names = frozenset(static_argnames)
        self._static_numbers = frozenset(static_argnums) | self._numbers_of_names()
        self._declared = signature
        self._options = options
        self._entries: dict[tuple[Hashable, ...], list[Entry]] = {}
        self._lock = threading.RLock()

    def _numbers_of_names(self) -> frozenset[int]:
        names = parameter_names(self._function, 0)
        return frozenset(k for k, name in enumerate(names) if name in self._static_names)

    def __call__(self, *args: Tree, **kwargs: Tree) -> Any:
        """The function's result for these arguments."""
        if current() is not None:  # inside a trace the function is part of what is traced
            return self._function(*args, **kwargs)
        static: tuple[tuple[int | str, Hashable], ...] = ()
        dynamic, named = args, kwargs
        if self._static_numbers or self._static_names:
            static, dynamic, named = self._split(args, kwargs)
        # Most calls are of arrays, not of trees of arrays.
        key: list[Hashable] = [len(dynamic), static]
        found = None if named else _buffers(dynamic, key)
        if found is None:
            leaves, treedef = flatten((dynamic, named) if named else dynamic)
            key = [treedef, static]
            found = _buffers(leaves, key)
        if found is not None:
            buffers, sizes = found
            for entry in self._entries.get(tuple(key), ()):
                values = entry.check(*sizes)
                if values is not None:
                    return _results(entry, buffers, values)
        return self._slow_call(static, dynamic, named)

    def _split(
        self, args: tuple[Tree, ...], kwargs: dict[str, Tree]
    ) -> tuple[tuple[tuple[int | str, Hashable], ...], tuple[Tree, ...], dict[str, Tree]]:
        count = len(args)
        numbers = {k % count for k in self._static_numbers if -count <= k < count}
        static: list[tuple[int | str, Tree]] = [(k, args[k]) for k in sorted(numbers)]
        static += [(n, kwargs[n]) for n in sorted(kwargs) if n in self._static_names]
        for name, value in static:
            try:
                hash(value)
            except TypeError:
                raise StaticArgumentError(
                    f"static argument {name!r} of {function_name(self._function)!r} is a {type(value).__name__}, which "
                    f"cannot be hashed; pass a tuple or another hashable value, or make it a traced argument{where()}"
                ) from None
        dynamic = tuple(a for k, a in enumerate(args) if k not in numbers)
        named = {n: v for n, v in kwargs.items() if n not in self._static_names}
        return tuple((n, (type(v), v)) for n, v in static), dynamic, named

    def _take_apart(
        self, static: tuple[tuple[int | str, Hashable], ...], dynamic: tuple[Tree, ...], named: dict[str, Tree]
    ) -> _Call:
        leaves, treedef = flatten((dynamic, named) if named else dynamic)
        positions = dict(static)
        parameters = parameter_names(self._function, len(dynamic) + len(positions))
        free = [name for k, name in enumerate(parameters) if k not in positions]
        names = _leaf_labels(free, dynamic, named)
        arrays = [leaf_array(leaf, name) for leaf, name in zip(leaves, names, strict=True)]
        flat = not named and len(leaves) == len(dynamic) and all(map(operator.is_, leaves, dynamic))
        return _Call(static, treedef, len(leaves) if flat else treedef, arrays, names)

    def _slow_call(
        self, static: tuple[tuple[int | str, Hashable], ...], dynamic: tuple[Tree, ...], named: dict[str, Tree]
    ) -> Tree:
        """Convert arguments, and trace if no entry serves the call."""
        call = self._take_apart(static, dynamic, named)
        buffers = [np.require(a, requirements=("C", "A")) for a, _ in call.arrays]
        sizes = [size for a in buffers for size in a.shape]
        key = (call.structure, static, *(fact for a, weak in call.arrays for fact in (a.dtype, a.ndim, weak)))
        with self._lock:
            for entry in self._entries.get(key, ()):
                values = entry.check(*sizes)
                if values is not None:
                    break
            else:
                entry = self._trace(call, bool(named))
                values = entry.check(*sizes)
                assert values is not None, "the guards of a trace hold for the call that was traced"
                # Most calls are like the last one, so the newest entry is asked first.
                self._entries[key] = [entry, *self._entries.get(key, ())]
        return _results(entry, buffers, values)

    def _trace(self, call: _Call, has_named: bool) -> Entry:
        from harp.transforms.programs import program_for, runner  # the compiler: not before it is used

        scope = Scope()
        name = function_name(self._function)
        arguments = size_arguments(call.names, call.arrays, scope)
        axes = list(scope.symbols)
        if self._declared is not None:
            _declare_all(self._declared, arguments, scope)

        traced = trace_function(self._on_leaves(call, has_named), arguments, scope, name)
        program = program_for(traced.graph, self._options)
        # Not those of the program's graph: another function with other captured arrays may have made the program.
        captured = [node.captured.array for node in traced.graph.captured]
        signature = signature_of(traced.graph, scope, axes)
        log.info("%s: program %d, %r", name, self.compilations + 1, signature)
        single = traced.treedef.is_leaf()
        return Entry(
            signature.compile_check(),
            runner(program, captured),
            traced.treedef,
            traced.weak,
            single,
            signature,
            program,
        )

    def _on_leaves(self, call: _Call, has_named: bool) -> Callable[[Sequence[Array]], Tree]:
        """The function with the leaves of its traced arguments as its only argument."""

        def apply(arrays: Sequence[Array]) -> Tree:
            restored = unflatten(call.treedef, arrays)
            dynamic, named = restored if has_named else (restored, {})
            return self._call_with_static(call.static, dynamic, named)

        return apply

    def _call_with_static(
        self, static: tuple[tuple[int | str, Hashable], ...], dynamic: Sequence[Tree], named: dict[str, Tree]
    ) -> Tree:
        values = {name: pair[1] for name, pair in static}  # type: ignore[index]
        args = list(dynamic)
        for position in sorted(k for k in values if isinstance(k, int)):
            args.insert(position, values[position])
        keywords = {k: v for k, v in values.items() if isinstance(k, str)}
        return self._function(*args, **named, **keywords)

    @property
    def compilations(self) -> int:
        """How many programs this function has made in this process, whether compiled or loaded from the cache."""
        return len({id(e.program) for entries in self._entries.values() for e in entries})

    @property
    def signatures(self) -> tuple[GraphSignature, ...]:
        """What each trace of this function serves, in order of tracing."""
        return tuple(e.signature for entries in self._entries.values() for e in reversed(entries))

    def lower(self, *args: Tree, **kwargs: Tree) -> Stages:
        """The stages of the program for these arguments, as text: `.graph`, `.schedule`, `.loops`, `.source`."""
        from harp.transforms.programs import stages_of

        static, dynamic, named = self._split(args, kwargs)
        call = self._take_apart(static, dynamic, named)
        scope = Scope()
        arguments = size_arguments(call.names, call.arrays, scope)
        name = function_name(self._function)
        traced = trace_function(self._on_leaves(call, bool(named)), arguments, scope, name)
        return stages_of(traced.graph)

    def __repr__(self) -> str:
        return f"<jit of {function_name(self._function)}, {self.compilations} programs>"


def _buffers(leaves: Sequence[object], key: list[Hashable]) -> tuple[list[Buffer], list[int]] | None:
    """The leaves as C-contiguous buffers, and all their sizes, if they are arrays; puts what they are into the key."""
    buffers: list[Buffer] = []
    sizes: list[int] = []
    for leaf in leaves:
        if type(leaf) is np.ndarray and leaf.dtype in _NATIVE:
            buffer, weak = leaf, False
        elif type(leaf) is Array and leaf._value is not None:
            buffer, weak = leaf._value, leaf.weak
        else:
            return None
        flags = buffer.flags
        if not (flags.c_contiguous and flags.aligned):
            buffer = np.require(buffer, requirements=("C", "A"))
        buffers.append(buffer)
        sizes += buffer.shape
        key += (buffer.dtype, buffer.ndim, weak)
    return buffers, sizes


def _leaf_labels(names: Sequence[str], dynamic: Sequence[Tree], named: dict[str, Tree]) -> list[str]:
    pairs = [*zip(names, dynamic, strict=False), *sorted(named.items())]
    return [label for name, value in pairs for label in labels(name, value)]


def _declare_all(declared: tuple[Tree, ...], arguments: Sequence[Argument], scope: Scope) -> None:
    signatures = leaves_or_none(declared, _is_signature)
    if len(signatures) != len(arguments):
        raise SignatureError(
            f"{len(signatures)} signatures are declared, but the call has {len(arguments)} arrays{where()}"
        )
    named: dict[str, Index] = {}
    for declaration, argument in zip(signatures, arguments, strict=True):
        if isinstance(declaration, ArraySignature):
            declare(argument, declaration, scope, named)


def _is_signature(leaf: object) -> bool:
    return leaf is None or isinstance(leaf, ArraySignature)


def _results(entry: Entry, buffers: Sequence[Buffer], sizes: tuple[int, ...]) -> Tree:
    outputs = entry.run(buffers, sizes)
    if entry.single:
        return from_numpy(outputs[0], entry.weak[0])
    arrays = [from_numpy(o, weak) for o, weak in zip(outputs, entry.weak, strict=True)]
    return unflatten(entry.treedef, arrays)


def jit(
    function: Callable[..., Tree] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    signature: Sequence[Tree] | None = None,
    options: CompileOptions | None = None,
) -> JitFunction | Callable[[Callable[..., Tree]], JitFunction]:
    """Compile a function of trees of arrays; use it as `@harp.jit`.

    The compiled function takes NumPy arrays, harp arrays and numbers, and returns the tree of harp arrays that the
    function returns. It is traced and compiled once for a given tree, rank and dtype of its arguments, whatever their
    sizes. Arguments named by `static_argnums` or `static_argnames` are passed as they are; each value is traced on its
    own. `signature` declares sizes, one entry for each argument, as in `jit(f, signature=(harp.f32["n", 3], None))`.

    Raises, at a call: ArgumentError, UnsupportedDTypeError, SignatureError, ShapeError, StaticArgumentError,
    OutputError, LeakedTracerError, OutOfMemoryError, ToolchainError.

    >>> f = jit(lambda x: x * 2 + 1)
    >>> f(np.arange(3.0)), f(np.arange(5.0)), f.compilations
    (Array([1., 3., 5.]), Array([1., 3., 5., 7., 9.]), 1)
    """
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    declared = None if signature is None else tuple(signature)

    def decorate(f: Callable[..., Tree]) -> JitFunction:
        if not callable(f):
            raise ArgumentError(f"jit takes a function, not a {type(f).__name__}{where()}")
        return JitFunction(f, numbers, names, declared, options or CompileOptions())

    return decorate if function is None else decorate(function)

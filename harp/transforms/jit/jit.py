"""`jit`: trace once, compile once, and run the same machine code for every size.

A call looks up the entries for its tree of arguments, dtypes and ranks; the first whose guards hold for the call's
sizes runs. Where none does, the function is traced with this call as the example, which gives one more entry.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import partial, update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, overload
from weakref import ref

import attrs

from harp.backends.devices import known_device
from harp.backends.options import CompileOptions
from harp.config import MOST_THREADS, log, on_device, on_search, settings
from harp.errors import ArgumentError
from harp.garbage import collected_later
from harp.locks import compiler_imports, importing
from harp.progress import announced, waiting
from harp.trace.array.array import Array, Donation
from harp.trace.eval import host_calls
from harp.trace.eval.not_finite import require_finite_results
from harp.trace.graph.host_calls import numbered
from harp.trace.scalar.dtypes import DType, Kind, default_of
from harp.trace.sizes.integer_checks import compile_integer_checks
from harp.trace.sizes.levels import STATE
from harp.trace.sizes.proofs import inspection, unproved
from harp.trace.sizes.scope import Scope
from harp.trace.sizes.signature import Check, GraphSignature, signature_of
from harp.trace.source_locations import plural, where
from harp.trace.tracebacks import shorten
from harp.trace.tracer import (
    Argument,
    Traced,
    function_name,
    parameter_names,
    require_function,
    require_result,
    size_arguments,
    trace_function,
)
from harp.trace.trees import Tree, TreeSpec, flatten, labels, unflatten
from harp.transforms.jit.calls import (
    MISS,
    GeneratedBody,
    Leaf,
    Runner,
    ShortWay,
    buffers_of,
    described,
    example_of,
    followed,
    names,
    on_host,
    preceded,
    resident,
    runner,
    short_way,
    warn_of_copies,
)
from harp.transforms.jit.declared import Declared, declare_all, declared_signature
from harp.transforms.jit.static import NO_STATIC, Call, Static, StaticParameters, donated_parameters, static_parameters
from harp.transforms.jit.waiting import announced_trace, making, warn_of_pins, warn_of_promotion
from harp.transforms.pickling import Travelling, arrived, name_of, portable, token_of
from harp.transforms.typed import ArrayLike, P, R, Transformed

if TYPE_CHECKING:
    from harp.transforms.jit.profile import Profile
    from harp.transforms.jit.profiling import Profiling
    from harp.transforms.jit.programs import CompiledProgram
    from harp.transforms.jit.stages import Stages
from harp.transforms.staging import called_at_once

_S = TypeVar("_S")  # what a method is called on
_Q = ParamSpec("_Q")  # and its other parameters


@attrs.frozen(eq=False)
class Entry:
    """One trace of the function: for which sizes it holds, and how to run it."""

    check: Check
    run: Runner
    treedef: TreeSpec  # of the arguments
    leaves: tuple[Leaf, ...]
    body: GeneratedBody
    signature: GraphSignature
    program: CompiledProgram
    _short: list[ShortWay | None] = attrs.field(factory=list)

    @property
    def short_way(self) -> ShortWay | None:
        """The short way for calls that are like the one before; made at the second call."""
        if self.program.kernel.memory is not None:
            return None  # it is for arrays of the host
        if not self._short:
            self._short.append(short_way(self.treedef, self.leaves, self.signature, self.body))
        return self._short[0]


# A function keeps traces for so many combinations of static values, and so many traces for one kind of arguments.
_MOST = 256

_ShortWays = dict[Hashable, ShortWay | None]  # the newest for each key of static values
_Entries = dict[tuple[Hashable, ...], list[Entry]]
_functions: deque[ref[JitFunction[..., Any]]] = deque()


def _register(function: JitFunction[..., Any]) -> None:
    """Make a function known to `_living`, and drop those that are gone, two at a time. A weakref callback would be
    Python code in a finaliser, where an exception that a signal handler raises is lost."""
    _functions.append(ref(function))
    for _ in range(2):
        first = _functions[0]
        if first() is None:
            with suppress(ValueError):  # another thread was faster
                _functions.remove(first)
        else:
            _functions.rotate(-1)


def _living() -> list[JitFunction[..., Any]]:
    """All functions that are alive."""
    return [function for reference in _functions.copy() if (function := reference()) is not None]


def _after_fork() -> None:
    """In a forked child, replace locks: the threads that held them are not there."""
    for function in _living():
        function._lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def _switch() -> None:
    """Choose entries again: programs that search their results, or run on another device, are others."""
    for function in _living():
        function._choose_entries()


def _run_kernel(*arguments: Any) -> Any:
    with compiler_imports(), importing:
        from harp.transforms.jit.kernels import run_kernel  # the compiler: not before it is used

    return run_kernel(*arguments)


host_calls.run_kernel = _run_kernel
on_search.append(_switch)
on_device.append(_switch)


class Options(NamedTuple):
    """What `jit` was told about a function."""

    static: StaticParameters
    donated: StaticParameters
    declared: Declared | None
    compiler: CompileOptions
    threads: int | None
    check: bool
    search: bool  # for NaN and infinities in results, whatever the settings say
    device: str | None  # None for the device of the settings
    warn_promotion: bool


class JitFunction(Travelling, Generic[P, R]):
    """A compiled function, which `jit` makes: called like the function. As an attribute of a class it is a method.

    >>> import numpy as np
    >>> f = jit(lambda x: x * 2)
    >>> f(np.ones(2)), f.compilations
    (Array([2., 2.]), 1)
    """

    def __init__(self, function: Callable[P, R], how: Options) -> None:
        update_wrapper(self, function, updated=())
        self._function: Callable[..., Any] = function
        self._how = how
        self._static, self._donated, self._declared = how.static, how.donated, how.declared
        self._options, self._threads, self._device = how.compiler, how.threads, how.device
        self._check, self._search = how.check, how.search
        self._has_static = bool(how.static)
        self._copies = False  # whether a copy of arguments between devices was warned of
        self._lock = threading.RLock()
        self._forgotten = 0  # the number of programs that were dropped
        self._made_for: dict[tuple[bool, bool, bool, str, DType], tuple[_ShortWays, _Entries]] = {}
        self._choose_entries()
        _register(self)

    def _choose_entries(self) -> None:
        """Choose the entries for the current device and the current search for NaN and infinities."""
        with self._lock:
            self._runs_on = self._device or settings.device
            mode = settings.nans, settings.infinities, settings.jit, self._runs_on, default_of(Kind.FLOAT)
            self._short_ways, self._entries = self._made_for.setdefault(mode, ({}, {}))

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __call__(self, *args: ArrayLike, **kwargs: ArrayLike) -> R: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result for these arguments."""
        if STATE.level is not None:  # inside a trace the function is inlined
            return self._function(*args, **kwargs)
        try:
            static, dynamic, named = NO_STATIC, args, kwargs
            if self._has_static:
                static, dynamic, named = self._static.split(self._function, args, kwargs)
            # A list, since a positional argument may be such a tuple, too.
            given: Tree = [dynamic, named] if named else dynamic
            short_way = self._short_ways.get(static[0])
            if short_way is not None:
                result = short_way(given)
                if result is not MISS:
                    return result
            # Most calls take arrays, not trees of arrays.
            key: list[Hashable] = [len(dynamic), static[0]]
            leaves: Sequence[object] = dynamic
            buffers_and_sizes = None if named else buffers_of(dynamic, key, self._runs_on)
            if buffers_and_sizes is None:
                leaves, treedef = flatten(given)
                key = [treedef, static[0]]
                buffers_and_sizes = buffers_of(leaves, key, self._runs_on)
            if buffers_and_sizes is not None:
                buffers, sizes = buffers_and_sizes
                for entry in self._entries.get(tuple(key), ()):
                    values = entry.check(*sizes)
                    if values is not None:
                        self._short_ways[static[0]] = entry.short_way
                        return entry.run(buffers, values, leaves)
                buffers.clear()  # now only their owners hold the buffers
            if not settings.jit:  # no program is made in this mode
                return called_at_once(self._function, args, kwargs)
            return self._slow_call(static, dynamic, named)
        except Exception as error:
            shorten(error, self._function)
            raise

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> JitFunction[P, R]: ...

    @overload
    def __get__(
        self: JitFunction[Concatenate[_S, _Q], R], instance: _S, owner: type | None = None
    ) -> Transformed[_Q, R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None or isinstance(self._function, staticmethod):
            return self
        return MethodType(self, instance)

    def __reduce__(self) -> str | tuple[Callable[..., Any], tuple[object, ...], dict[str, object]]:
        """By name, as functions are pickled, or as the function and the options. A process that unpickles it several
        times has one object, with its traces."""
        name = name_of(self)
        if name is not None:
            return name
        return arrived, (token_of(self), JitFunction, portable(self._function), self._how), self._names()

    def _unpack(self, static: Static, dynamic: tuple[Tree, ...], named: dict[str, Tree]) -> Call:
        leaves, treedef = flatten([dynamic, named] if named else dynamic)
        parameters = parameter_names(self._function, len(dynamic) + len(static.values))
        free = [name for k, name in enumerate(parameters) if k not in static.values]
        values = [*zip(free, dynamic, strict=False), *sorted(named.items())]
        by_argument = [labels(name, value) for name, value in values]
        given = [(name, len(part)) for (name, _), part in zip(values, by_argument, strict=True)]
        names = [label for part in by_argument for label in part]
        numbers = [k for k in range(len(parameters)) if k not in static.values][: len(dynamic)]
        gone = [k in self._donated.numbers for k in numbers] + [name in self._donated.names for name in sorted(named)]
        marks = [mark for mark, part in zip(gone, by_argument, strict=True) for _ in part]
        # Asked once: another thread may donate an array, or choose another device, at any time.
        held = [resident(leaf, self._runs_on) for leaf in leaves]
        if not self._copies:
            self._copies = warn_of_copies(function_name(self._function), leaves, names, held, self._runs_on)
        arrays = [described(*each) for each in zip(leaves, names, held, strict=True)]
        flat = not named and len(leaves) == len(dynamic) and all(map(operator.is_, leaves, dynamic))
        donated = tuple(k for k, mark in enumerate(marks) if mark)
        return Call(static, given, treedef, len(leaves) if flat else treedef, leaves, held, arrays, names, donated)

    def _slow_call(self, static: Static, dynamic: tuple[Tree, ...], named: dict[str, Tree]) -> Tree:
        """Convert arguments, and trace if no entry serves the call."""
        call = self._unpack(static, dynamic, named)
        buffers, leaves = call.buffers, call.leaves
        entry, values = self._entry(call, bool(named))
        del call  # its arrays would count as further owners of donated memory
        return entry.run(buffers, values, leaves)

    def _entry(self, call: Call, has_named: bool) -> tuple[Entry, tuple[int, ...]]:
        """The entry that serves a call, traced if there is none, and the values of its sizes."""
        key = (call.structure, call.static.key, *(fact for a, weak in call.arrays for fact in (a.dtype, a.ndim, weak)))
        with self._lock:
            for entry in self._entries.get(key, ()):
                values = entry.check(*call.sizes)
                if values is not None:
                    return entry, values
            entry = self._trace(call, has_named, len(self._entries.get(key, ())))
            values = entry.check(*call.sizes)
            assert values is not None, "the guards of a trace hold for the call that was traced"
            # Most calls are like the last one, so the newest entry is asked first.
            self._entries[key] = [entry, *self._entries.get(key, ())]
            self._make_room(key)
            return entry, values

    def _compile(self, call: Call, has_named: bool) -> Callable[..., Any]:
        """The function of the arguments that are not static, with its program for a call."""
        self._entry(call, has_named)
        return (lambda *args, **kwargs: self._slow_call(call.static, args, kwargs)) if call.static.values else self

    def _make_room(self, latest: tuple[Hashable, ...]) -> None:
        """Drop the oldest of too many traces, first those for the static values passed least recently.

        All short ways are dropped, too: those that are made again show which static values are in use.
        """
        before = self._programs()
        if len(self._entries[latest]) > _MOST:
            del self._entries[latest][_MOST:]
        if len(self._entries) > _MOST:  # each static value has at least one entry
            values = dict.fromkeys(key[1] for key in self._entries)
            if len(values) > _MOST:
                idle = [value for value in values if value not in self._short_ways and value != latest[1]]
                others = [value for value in values if value != latest[1]]
                gone = {*(idle or others)[: _MOST // 4]}
                for key in [key for key in self._entries if key[1] in gone]:
                    del self._entries[key]
                self._short_ways.clear()
        self._forgotten += len(before - self._programs())

    def _programs(self) -> set[int]:
        """The identities of the programs that calls use now."""
        return {id(e.program) for entries in self._entries.values() for e in entries}

    def _trace(self, call: Call, has_named: bool, earlier: int) -> Entry:
        with collected_later(), waiting():
            return self._compiled(call, has_named, earlier)

    def _compiled(self, call: Call, has_named: bool, earlier: int, profiling: Profiling | None = None) -> Entry:
        with compiler_imports(), importing:
            from harp.transforms.jit.programs import begin, body, calls_lapack, program_for  # not before it is needed

        begin(self._device)
        scope, arguments, traced, signature = self._traced(call, has_named)
        warn_of_pins(function_name(self._function), earlier + 1, scope.pins)
        if self._how.warn_promotion and scope.promotion is not None:
            warn_of_promotion(function_name(self._function), *scope.promotion)
        searches = not profiling and (settings.nans or self._search)
        # A search for the origin of a NaN reads the arguments again, so these are not donated.
        donated = () if searches or profiling else call.donated
        graph, functions = numbered(traced.graph, partial(calls_lapack, self._device))
        check = signature.compile_check()
        with announced(making(function_name(self._function), traced.graph)):
            make, sizes = profiling.program if profiling else program_for, check(*call.sizes)
            program = make(graph, self._options, donated, self._check, self._device, sizes)
        # Not from the program's graph: the program may be shared with a function that captured other arrays.
        captured = [node.captured.array for node in traced.graph.captured]
        log.info("%s: program %d, %r", function_name(self._function), self.compilations + 1, signature)
        donations = [Donation(function_name(self._function), call.names[k]) for k in donated]
        code = body(program, captured, traced.treedef, traced.weak, self._threads, donations, functions)
        if searches:
            search = partial(require_finite_results, traced.graph, signature.sizes, settings.infinities or self._search)
            code = followed(code, "search", on_host(search), len(traced.graph.outputs))
        if scope.integer_checks:
            integer_checks = tuple(scope.integer_checks.values())
            weak = [a.weak for a in arguments]
            counts = {uid: scope.resolve(count) for uid, count in scope.counters.items()}
            inspect = compile_integer_checks(
                integer_checks, traced.graph.inputs, weak, signature.axes, signature.quotients, counts
            )
            code = preceded(code, "inspect", on_host(inspect), [names(code.inputs)])
        # A checked program compares each index with its array itself.
        guards = [guard._replace(index=scope.resolve(guard.index)) for guard in signature.guards]
        # With HARP_VERIFY=3 each call looks at every view with its own sizes.
        open_claims = () if self._check else unproved(traced.graph, guards, settings.verify < 3)
        if open_claims:
            code = preceded(code, "require_inside", inspection(open_claims, signature.sizes), code.sizes)
        return Entry(
            check,
            runner(code),
            call.treedef,
            tuple(Leaf(a.dtype.numpy, len(a.shape), a.weak) for a in arguments),
            code,
            signature,
            program,
        )

    def _traced(self, call: Call, has_named: bool) -> tuple[Scope, list[Argument], Traced, GraphSignature]:
        """The function traced with this call as the example."""
        scope = Scope()
        arguments = size_arguments(call.names, call.arrays, scope)
        axes = list(scope.symbols)
        if self._declared is not None:
            count = len(call.given) + len(call.static.values)
            declare_all(self._function, self._declared, call.given, count, arguments, scope)
        apply = self._on_leaves(call, has_named)
        name = function_name(self._function)
        with announced_trace(name):
            traced = trace_function(apply, arguments, scope, name)
        traced = traced._replace(graph=traced.graph.with_token_as_output())  # behind the results; it is not returned
        return scope, arguments, traced, signature_of(traced.graph, scope, axes)

    def _on_leaves(self, call: Call, has_named: bool) -> Callable[[Sequence[Array]], Tree]:
        """The function with the leaves of its traced arguments as its only argument."""

        def apply(arrays: Sequence[Array]) -> Tree:
            restored = unflatten(call.treedef, arrays)
            dynamic, named = restored if has_named else (restored, {})
            return require_result(self._call_with_static(call.static, dynamic, named), self._function)

        return apply

    def _call_with_static(self, static: Static, dynamic: Sequence[Tree], named: dict[str, Tree]) -> Tree:
        args = list(dynamic)
        keywords = dict(named)
        for name, value in static.values.items():  # positions come first, in order
            if isinstance(name, int):
                args.insert(name, value)
            else:
                keywords[name] = value
        return self._function(*args, **keywords)

    @property
    def compilations(self) -> int:
        """How many programs this function has made in this process, whether compiled or loaded from the cache."""
        return len(self._programs()) + self._forgotten

    @property
    def signatures(self) -> tuple[GraphSignature, ...]:
        """What each trace of this function serves, in order of tracing."""
        return tuple(e.signature for entries in self._entries.values() for e in reversed(entries))

    def lower(self, *args: Tree, **kwargs: Tree) -> Stages:
        """The stages of the program for these arguments, as text: `.graph`, `.schedule`, `.loops`, `.source`. In place
        of an array it takes a signature whose sizes are numbers.

        Nothing is compiled or run. `.memory(*sizes)` says how much memory a call takes, `.cost()` how much it computes
        and moves, and `.html(path)` writes a page with all of it. Raises what tracing does.

        >>> import numpy as np
        >>> "x0" in str(jit(lambda x: x + 1).lower(np.ones(3)).graph)
        True
        """
        with compiler_imports(), importing:
            from harp.transforms.jit.programs import calls_lapack
            from harp.transforms.jit.stages import stages_of  # the compiler: not before it is used

        static, dynamic, named = self._static.split(self._function, args, kwargs)
        call = self._unpack(static, *example_of((dynamic, named)))
        with collected_later(), waiting():
            scope, _, traced, signature = self._traced(call, bool(named))
            device = known_device(self._device or settings.device)
            given = signature.compile_check()(*call.sizes)
            assert given is not None, "the guards of a trace hold for the call that was traced"
            sizes = [scope.origins[s] for s in signature.sizes]
            graph, _ = numbered(traced.graph, partial(calls_lapack, device))
            with announced(making(name := function_name(self._function), traced.graph)):
                return stages_of(
                    *(name, graph, call.donated, sizes, given, self._threads, self._check, device),
                    promotion=scope.promotion,
                    function=self._function,
                    compiled=partial(self._compile, call.hollow(), bool(named)),
                )

    def profile(self, *args: Tree, **kwargs: Tree) -> Profile:
        """How long each kernel takes in a call with these arguments, beside what it moves and computes, and what the
        device can do: print it for a table; `.trace(path)` writes a file for Perfetto.

        The function is called some times, and nothing is donated. Raises what a call does, and ToolchainError where
        there is no compiler.

        >>> import numpy as np
        >>> profile = jit(lambda x: x * 2).profile(np.ones(1000))
        >>> profile.kernels[0].bytes, profile.kernels[0].operations
        (16000, 1000)
        """
        with compiler_imports(), importing:
            from harp.transforms.jit.profiling import Profiling

        static, dynamic, keywords = self._static.split(self._function, args, kwargs)
        call = self._unpack(static, dynamic, keywords)
        buffers = call.buffers
        profiling = Profiling()
        with collected_later(), waiting():
            entry = self._compiled(call, bool(keywords), 0, profiling)
            values = entry.check(*call.sizes)
            assert values is not None, "the guards of a trace hold for the call that was traced"
            run = partial(entry.run, buffers, values, call.leaves)
            name = function_name(self._function)
            return profiling.profile(name, values, self._threads, run)

    def __repr__(self) -> str:
        return f"<jit of {function_name(self._function)}, {plural(self.compilations, 'programs')}>"


@overload
def jit(
    function: Callable[P, R],
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    signature: Sequence[Tree] | None = None,
    options: CompileOptions | None = None,
    threads: int | None = None,
    check: bool | None = None,
    device: str | None = None,
    warn_promotion: bool = False,
) -> JitFunction[P, R]: ...


@overload
def jit(
    function: None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    signature: Sequence[Tree] | None = None,
    options: CompileOptions | None = None,
    threads: int | None = None,
    check: bool | None = None,
    device: str | None = None,
    warn_promotion: bool = False,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(
    function: Callable[P, R] | None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    signature: Sequence[Tree] | None = None,
    options: CompileOptions | None = None,
    threads: int | None = None,
    check: bool | None = None,
    device: str | None = None,
    warn_promotion: bool = False,
) -> JitFunction[P, R] | Callable[[Callable[P, R]], JitFunction[P, R]]:
    """Compile a function of trees of arrays; use it as `@harp.jit`.

    The compiled function takes NumPy arrays, harp arrays and numbers, and returns the tree of harp arrays that the
    function returns. It is traced and compiled once for a given tree, rank and dtype of its arguments, whatever their
    sizes.

    - `static_argnums`, `static_argnames`: arguments that are passed as they are; each value is traced on its own.
    - `donate_argnums`, `donate_argnames`: arguments whose harp arrays the caller gives up. Results may take over their
      memory, and to use them again is an error.
    - `signature`: declared dtypes and sizes, an entry for each argument, as in `signature=(harp.f32["n", 3], None)`.
    - `options`: how the C is compiled, see `harp.CompileOptions`.
    - `threads`: how many threads run this function's loops, if not as many as `harp.set_threads` says.
    - `check`: with True a NaN or an infinity in a result raises NotFiniteError, which names the line where it was made,
      and each index is compared with its array (AddressError). Such programs are slow. None asks HARP_CHECK.
    - `device`: where the function runs and its results are, if not where `harp.default_device` says.
    - `warn_promotion`: with True a PromotionWarning tells where a float32 array first becomes float64.

    Raises DeviceError for a device that does not work; and, at a call, ArgumentError, UnsupportedDTypeError,
    SignatureError, ShapeError, StaticArgumentError, DeviceError, OutputError, LeakedTracerError, DonatedError,
    OutOfMemoryError, ToolchainError, AddressError, NotFiniteError, and what functions of Python raise that it calls.

    >>> import numpy as np
    >>> f = jit(lambda x: x * 2 + 1)
    >>> f(np.arange(3.0)), f(np.arange(5.0)), f.compilations
    (Array([1., 3., 5.]), Array([1., 3., 5., 7., 9.]), 1)
    """
    if not isinstance(options, (CompileOptions, type(None))):
        raise ArgumentError(f"options must be a harp.CompileOptions, not a {type(options).__name__}{where()}")
    if threads is not None and (type(threads) is not int or not 1 <= threads <= MOST_THREADS):
        raise ArgumentError(f"threads is a number from 1 to {MOST_THREADS}, not {threads!r}{where()}")
    if check is not None and type(check) is not bool:
        raise ArgumentError(f"check is True, False or None, not {check!r}{where()}")
    checked = settings.check if check is None else check
    where_to_run = None if device is None else known_device(device)

    def decorate(f: Callable[P, R]) -> JitFunction[P, R]:
        if isinstance(f, classmethod):
            raise ArgumentError(f"put @classmethod above @harp.jit, not below{where()}")
        require_function("jit", f)
        static = static_parameters(f, static_argnums, static_argnames)
        donated = donated_parameters(f, donate_argnums, donate_argnames, static)
        declared = None if signature is None else declared_signature(f, signature, static)
        given = options or CompileOptions(), threads, checked, check is True, where_to_run, warn_promotion
        return JitFunction(f, Options(static, donated, declared, *given))

    return decorate if function is None else decorate(function)

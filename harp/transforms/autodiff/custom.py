"""`custom_jvp` and `custom_vjp`: functions whose derivatives the user defines."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import update_wrapper
from typing import Any

import attrs

from harp.errors import ArgumentError, CotangentError, GradientError, TangentError
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_named, emit
from harp.trace.graph.body import close
from harp.trace.graph.graph import Graph, inline, transform
from harp.trace.graph.host_calls import calling_for_values, silent, without_calls_about
from harp.trace.graph.node import Body, Custom, Input, Node
from harp.trace.graph.rebuild import with_inputs
from harp.trace.scalar.dtypes import i64
from harp.trace.sizes.levels import current
from harp.trace.source_locations import kind_of, plural, where
from harp.trace.tracer import Argument, Traced, function_name, leaf_names, require_function
from harp.trace.trees import Tree, TreeSpec, children, count_leaves, flatten, same_node, tree_text, unflatten
from harp.transforms.autodiff.arguments import fitting
from harp.transforms.autodiff.gather_rules import constant
from harp.transforms.autodiff.vjp import vjp as vjp_graph
from harp.transforms.closures import closed_over, standing_for
from harp.transforms.pickling import Travelling, name_of, portable_parts, restored
from harp.transforms.rules import Given
from harp.transforms.staging import fresh_token, shape_of, stage, taking_token, with_arrays, without_token

Function = Callable[..., Any]


class _Custom(Travelling):
    """A function that is called like another one, and has derivatives of its own."""

    def __init__(self, function: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        require_function(type(self).__name__, function)
        self._function = function
        self._fixed = tuple(nondiff_argnums)
        update_wrapper(self, function, updated=())

    def __reduce__(self) -> str | tuple[Function, tuple[object, ...]]:
        name = name_of(self)
        if name is not None:
            return name
        return restored, (type(self), {name: portable_parts(value) for name, value in vars(self).items()})

    def _derivative(
        self, fixed: Sequence[object], treedef: TreeSpec, labels: Sequence[str], closure: Sequence[Array]
    ) -> Given:
        """The derivative object of one call; its rules read the arrays of `closure` besides the arguments."""
        raise NotImplementedError

    def __call__(self, *args: Tree, **kwargs: Tree) -> Any:
        name = function_name(self._function)
        args = _by_position(self._function, args, kwargs, name)
        for k in self._fixed:
            if not 0 <= k < len(args):
                raise ArgumentError(f"nondiff_argnums of {name!r} names argument {k}, of {len(args)}{where()}")
        fixed = [args[k] for k in self._fixed]
        moving = tuple(a for k, a in enumerate(args) if k not in self._fixed)
        leaves, treedef = flatten(moving)
        labels = leaf_names(self._function, moving, {})

        def with_fixed(arguments: Sequence[Tree]) -> Any:
            rest = iter(arguments)
            return self._function(*(args[k] if k in self._fixed else next(rest) for k in range(len(args))))

        if current() is None:
            self._derivative(fixed, treedef, labels, [])
            return with_fixed(with_arrays(moving, name))
        advice = "name it in nondiff_argnums"
        arrays = [as_named(leaf, f"argument {n}", advice) for leaf, n in zip(leaves, labels, strict=True)]

        def call(arrays: Sequence[Array]) -> Tree:
            return with_fixed(unflatten(treedef, arrays[1:]))

        # Arrays that the rules close over become operands, too: the rules are traced after the enclosing function.
        closure = closed_over([self, *fixed])
        labels += [f"an array that {name!r} reads" for _ in closure]
        derivative = self._derivative(fixed, treedef, labels, closure)
        arrays += closure
        arguments = [Argument(n, a.kind, shape_of(a), a.weak) for n, a in zip(labels, arrays, strict=True)]
        traced = stage(call, [Argument("0", i64, ()), *arguments], name, fresh_token())
        graph, tokens = taking_token(traced)
        body, captured = close(graph, 0, 0, traced.free, hoists=False)
        derivative = _WithToken(derivative) if tokens else derivative
        parts = Custom((*map(node_of, arrays), *tokens, *captured), body, derivative).parts
        return unflatten(traced.treedef, [emit(part) for part in without_token(parts, traced)])


class custom_jvp(_Custom):
    """A function whose derivative in a direction is given; use it as `@harp.custom_jvp`, and then `@f.defjvp`.

    The rule takes a tuple of the arguments and one of their tangents, and returns the value and its tangent, which is
    linear in the tangents: so it serves reverse mode as well. Arguments that `nondiff_argnums` names are passed to it
    first; they are no arrays. Without a rule a call raises ArgumentError.

    >>> import harp.numpy as hnp
    >>> @custom_jvp
    ... def log1pexp(x):
    ...     return hnp.log(1 + hnp.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t / (1 + hnp.exp(-x))
    >>> import harp
    >>> float(harp.grad(log1pexp)(1000.0))
    1.0
    """

    _rule: Function | None = None

    def defjvp(self, rule: Function) -> Function:
        """The rule: `rule(*fixed, primals, tangents)` returns `(value, tangent)`."""
        require_function("defjvp", rule)
        self._rule = rule
        return rule

    def defjvps(self, *rules: Function | None) -> None:
        """A rule for each argument, None where it has no derivative: `rule(tangent, value, *args)` returns the part of
        the value's tangent that comes from that of this argument. Not for functions with `nondiff_argnums`.

        >>> import harp, harp.numpy as hnp
        >>> scaled = harp.custom_jvp(lambda x, s: hnp.sin(x) * s)
        >>> scaled.defjvps(lambda t, value, x, s: t * hnp.cos(x) * s, None)
        >>> harp.grad(scaled, (0, 1))(0.0, 2.0)
        (Array(2.), Array(0.))
        """
        if self._fixed:
            raise ArgumentError(f"defjvps is for functions without nondiff_argnums; use defjvp{where()}")
        for rule in rules:
            if rule is not None:
                require_function("defjvps", rule)

        def together(primals: tuple[Tree, ...], tangents: tuple[Tree, ...]) -> tuple[Tree, Tree]:
            if len(rules) != len(primals):
                name = function_name(self._function)
                raise ArgumentError(
                    f"defjvps was given {plural(len(rules), 'rules')}, but {name!r} has "
                    f"{plural(len(primals), 'arguments')}{where()}"
                )
            value = self(*primals)
            pairs = zip(rules, tangents, strict=True)
            parts = [flatten(rule(t, value, *primals))[0] for rule, t in pairs if rule is not None]
            leaves, treedef = flatten(value)
            zeros = [0 * as_array(leaf) for leaf in leaves]
            return value, unflatten(treedef, [sum(summands) for summands in zip(zeros, *parts, strict=True)])

        self._rule = together

    def _derivative(
        self, fixed: Sequence[object], treedef: TreeSpec, labels: Sequence[str], closure: Sequence[Array]
    ) -> Given:
        name = function_name(self._function)
        if self._rule is None:
            raise ArgumentError(f"{name!r} has no rule; give it one with defjvp{where()}")
        return _ByTangents(name, self._rule, fixed, treedef, closure)


class custom_vjp(_Custom):
    """A function whose gradient is given; use it as `@harp.custom_vjp`, and then `f.defvjp(forward, backward)`.

    `forward` takes the arguments, and returns the value and anything that `backward` needs: a tree of arrays.
    `backward` takes this and the cotangent of the value, and returns a tuple of cotangents of the arguments, None for
    those that have none, also inside of a tree. It is linear in the cotangent: so it serves forward mode as well.
    Arguments that `nondiff_argnums` names are passed to `backward` first; they are no arrays. Without rules a call
    raises ArgumentError.

    >>> import harp.numpy as hnp
    >>> @custom_vjp
    ... def clipped(x):
    ...     return x * 1.0
    >>> clipped.defvjp(lambda x: (clipped(x), None), lambda _, ct: (hnp.clip(ct, -1, 1),))
    >>> import harp
    >>> float(harp.grad(lambda x: 10 * clipped(x))(3.0))
    1.0
    """

    _rules: tuple[Function, Function] | None = None

    def defvjp(self, forward: Function, backward: Function) -> None:
        """The rules: `forward(*args)` returns `(value, kept)`, `backward(*fixed, kept, cotangent)` the cotangents."""
        require_function("defvjp", forward)
        require_function("defvjp", backward)
        self._rules = forward, backward

    def _derivative(
        self, fixed: Sequence[object], treedef: TreeSpec, labels: Sequence[str], closure: Sequence[Array]
    ) -> Given:
        name = function_name(self._function)
        if self._rules is None:
            raise ArgumentError(f"{name!r} has no rules; give it some with defvjp{where()}")
        return _ByCotangents(name, self._rules, dict(zip(self._fixed, fixed, strict=True)), treedef, labels, closure)


def _by_position(function: Function, args: tuple[Tree, ...], kwargs: dict[str, Tree], name: str) -> tuple[Tree, ...]:
    """All arguments in the order of the parameters, also those given by name or by default, as rules take them."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except ValueError:  # a function written in C may have no signature
        bound = None
    except TypeError as error:
        raise ArgumentError(f"{name!r} {error}{where()}") from None
    if bound is not None:
        bound.apply_defaults()
        args, kwargs = bound.args, bound.kwargs
    if kwargs:
        raise ArgumentError(
            f"{name!r} has derivatives of its own, whose rules take arguments by position, and was given "
            f"{', '.join(kwargs)} by name only; make it a parameter that may be given by position{where()}"
        )
    return args


class _ByRules(Given):
    """Derivatives by the user's rules, which are linear in tangents or cotangents. Calls of Python in a rule are made
    where, and as often as, the derivative is computed."""

    def __init__(self, called: str, rules: tuple[Function, ...], treedef: TreeSpec, closure: Sequence[Array]) -> None:
        self.called, self.rules, self.treedef, self.closure = called, rules, treedef, closure
        self.own = count_leaves(treedef)
        self.count = self.own + len(closure)

    @abstractmethod
    def _traced(self, body: Body) -> Traced:
        """The rule, traced as a function of the arguments, and of the tangents or cotangents."""

    def _as_given(self, body: Body) -> Graph:
        traced = self._traced(body)
        return calling_for_values(self._without_calls_of_its_own(traced.graph), traced.before)

    def _transposed(self, body: Body) -> Graph:
        """The transpose of the traced rule: from arguments and output cotangents to input cotangents. Calls of Python
        that take the linear inputs are left out, since these have no values here."""
        traced = self._traced(body)
        graph = self._without_calls_of_its_own(traced.graph)
        linear = graph.inputs[self.count :]
        graph = calling_for_values(without_calls_about(graph, linear), traced.before)
        back = vjp_graph(graph, linear)
        zeros = {i: constant(0, i) for i in linear}
        put = inline(Graph((), back.outputs, back.sites), zeros)
        return Graph((*graph.inputs[: self.count], *back.inputs[len(graph.inputs) :]), put.outputs, put.sites)

    def _without_calls_of_its_own(self, graph: Graph) -> Graph:
        """The graph without the calls of Python of this function, where its rule calls it: the primal has made them."""

        def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
            made = node if inputs == node.inputs else with_inputs(node, inputs)
            if isinstance(made, Custom) and isinstance(made.derivative, Given):
                theirs = made.derivative.rules
                if theirs and all(a is b for a, b in zip(theirs, self.rules, strict=False)):
                    return silent(made)
            return made

        return transform(graph, rule)


class _ByTangents(_ByRules):
    """The derivatives that a rule for tangents gives."""

    def __init__(
        self, called: str, rule: Function, fixed: Sequence[object], treedef: TreeSpec, closure: Sequence[Array]
    ) -> None:
        super().__init__(called, (rule,), treedef, closure)
        self.rule, self.fixed = rule, fixed

    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        return self._as_given(body)

    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        return self._transposed(body)

    def _traced(self, body: Body) -> Traced:
        inputs, results = self.arguments(body), body.outputs
        name, own = function_name(self.rule), self.own

        def call(arrays: Sequence[Array]) -> Tree:
            tangents = iter(arrays[self.count :])
            directions = [next(tangents) if i.dtype.is_inexact else _zeros(i) for i in inputs[:own]]
            pairs = (unflatten(self.treedef, arrays[:own]), unflatten(self.treedef, directions))
            with standing_for(self.closure, arrays[own : self.count]):
                pair = self.rule(*self.fixed, *pairs)
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TangentError(f"{name!r} must return a pair (value, tangent){where()}")
            tangents_out, whats = flatten(pair[1])[0], ["the result"] * len(results)
            return _fitted(tangents_out, results, name, "tangent", whats, TangentError)

        inexact = [i for i in inputs if i.dtype.is_inexact]
        return stage(call, [*_arguments(inputs), *_arguments(inexact)], name, fresh_token())


class _ByCotangents(_ByRules):
    """The derivatives that a rule for cotangents gives."""

    def __init__(
        self,
        called: str,
        rules: tuple[Function, Function],
        fixed: dict[int, object],
        treedef: TreeSpec,
        labels: Sequence[str],
        closure: Sequence[Array],
    ) -> None:
        super().__init__(called, rules, treedef, closure)
        self.fixed, self.labels = fixed, [f"argument {label}" for label in labels]

    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        return self._transposed(body)

    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        return self._as_given(body)

    def _traced(self, body: Body) -> Traced:
        inputs, results = self.arguments(body), body.outputs

        def call(arrays: Sequence[Array]) -> Tree:
            with standing_for(self.closure, arrays[self.own : self.count]):
                return self._cotangents(arrays[: self.own], arrays[self.count :], inputs, results)

        inexact = [r for r in results if r.dtype.is_inexact]
        arguments = [*_arguments(inputs), *_arguments(inexact, "cotangent")]
        return stage(call, arguments, function_name(self.rules[1]), fresh_token())

    def _cotangents(
        self, primals: Sequence[Array], seeds: Sequence[Array], inputs: Sequence[Input], results: Sequence[Node]
    ) -> list[Array]:
        """The cotangents of the arguments, by the user's rules `forward` and `backward`."""
        forward, backward = self.rules
        rest = iter(unflatten(self.treedef, primals))
        count = len(self.fixed) + len(children(self.treedef))
        pair = forward(*(self.fixed[k] if k in self.fixed else next(rest) for k in range(count)))
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise CotangentError(f"{function_name(forward)!r} must return a pair (value, what is kept){where()}")
        value, kept = pair
        self._require_value(flatten(value)[0], results, function_name(forward))
        seed = iter(seeds)
        cotangents = [next(seed) if r.dtype.is_inexact else _zeros(r) for r in results]
        returned = backward(*self.fixed.values(), kept, unflatten(flatten(value)[1], cotangents))
        return self._leaves(returned, inputs, function_name(backward))

    def _require_value(self, leaves: Sequence[object], results: Sequence[Node], name: str) -> None:
        """Raise CotangentError for a value unlike the function's own."""
        if len(leaves) != len(results):
            raise CotangentError(
                f"the value that {name!r} returns first has {plural(len(leaves), 'arrays')}, but that of the function "
                f"has {len(results)}{where()}"
            )
        for leaf, result in zip(leaves, results, strict=True):
            fitting(leaf, result, f"value that {name!r} returns first", "the function's own", CotangentError)

    def _leaves(self, returned: object, inputs: Sequence[Input], name: str) -> list[Array]:
        """The cotangents of floating-point arguments; None is 0, for a leaf as for a tree."""
        arguments = children(self.treedef)
        if not isinstance(returned, tuple) or len(returned) != len(arguments):
            found = f"a tuple of {len(returned)}" if isinstance(returned, tuple) else kind_of(returned)
            raise CotangentError(
                f"the backward rule {name!r} must return a tuple of {plural(len(arguments), 'cotangents')}, one for "
                f"each argument of the function, not {found}; None stands for 0{where()}"
            )
        leaves: list[object] = []
        for cotangent, spec in zip(returned, arguments, strict=True):
            parts, same = flatten(cotangent, none_is_leaf=True)
            fitted = _with_none(same, iter(parts), spec)
            if fitted is None:
                texts = f"{name!r} returns {tree_text(same)} for an argument that is {tree_text(spec)}"
                raise CotangentError(f"{texts}{where()}")
            leaves += fitted
        leaves += [None] * len(self.closure)  # what is closed over has none: see `push_custom`
        filled = [_zeros(i) if leaf is None else leaf for leaf, i in zip(leaves, inputs, strict=True)]
        return _fitted(filled, inputs, name, "cotangent", self.labels, CotangentError)


def _with_none(tree: TreeSpec, leaves: Iterator[object], spec: TreeSpec) -> list[object] | None:
    """The leaves of a tree in which None may stand for any subtree of `spec`; None if the trees do not match."""
    if not tree:
        leaf = next(leaves)
        return [leaf] if not spec else [None] * count_leaves(spec) if leaf is None else None
    if not same_node(tree, spec):
        return None
    parts = [_with_none(a, leaves, b) for a, b in zip(children(tree), children(spec), strict=True)]
    return None if None in parts else [leaf for part in parts for leaf in part or ()]


class _WithToken(Given):
    """The derivatives of a function that calls Python: its last result is a token, which has none."""

    def __init__(self, one: Given) -> None:
        self.one, self.count, self.called, self.rules = one, one.count, one.called, one.rules

    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        return self.one.forward(attrs.evolve(body, outputs=body.outputs[:-1]), moving)

    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        return self.one.backward(attrs.evolve(body, outputs=body.outputs[:-1]), moving)


def _arguments(nodes: Sequence[Node], name: str = "") -> list[Argument]:
    named = ((n.name if isinstance(n, Input) and not name else name or "a result", n) for n in nodes)
    return [Argument(label, n.dtype, n.shape) for label, n in named]


def _zeros(like: Node) -> Array:
    return emit(constant(0, like))


def _fitted(
    leaves: Sequence[object],
    likes: Sequence[Node],
    rule: str,
    name: str,
    whats: Sequence[str],
    error: type[GradientError],
) -> list[Array]:
    """The floating-point leaves that a rule returns, checked against the dtypes and shapes of `likes`."""
    if len(leaves) != len(likes):
        raise error(
            f"{rule!r} returns {plural(len(leaves), name + 's')}, but the result has "
            f"{plural(len(likes), 'arrays')}{where()}"
        )
    returned, triples = f"{name} that {rule!r} returns", zip(leaves, likes, whats, strict=True)
    return [fitting(leaf, node, returned, what, error) for leaf, node, what in triples if node.dtype.is_inexact]

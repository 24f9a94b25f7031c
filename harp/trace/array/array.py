"""`Array`: a handle on a node of the function being traced or, outside a trace, on a buffer of numbers.

Arrays are immutable. Operators and methods are looked up by name (see `harp.lazy`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import numpy as np

from harp.errors import ArgumentError, ConcretizationError, DonatedError, LeakedTracerError, MutationError
from harp.lazy import FUNCTIONS
from harp.trace.array.at import At
from harp.trace.array.conversions import Conversions
from harp.trace.array.methods import Methods
from harp.trace.array.numpy_functions import NumpyFunctions
from harp.trace.array.operators import Operators
from harp.trace.array.questions import INTEGER, PICKLED, TEXT, TRUTH, message
from harp.trace.graph.node import Captured, Constant, Node
from harp.trace.index.polynomial import product
from harp.trace.scalar.dtypes import OF_NUMPY, DType, NDArray, as_dtype
from harp.trace.sizes.known import known
from harp.trace.sizes.levels import Level, current
from harp.trace.sizes.size import resolve_all, wrap
from harp.trace.source_locations import where
from harp.trace.trees import Tree, leaf_type


class Donation(NamedTuple):
    """To which argument of which function an array was donated."""

    function: str
    argument: str


_BY_NAME: dict[str, Callable[..., Array]] = FUNCTIONS


@leaf_type
class Array(Conversions, NumpyFunctions, Methods, Operators):
    """An immutable n-dimensional array.

    Inside a traced function it stands for a value that is computed when the program runs, and its sizes may be
    symbolic (`harp.Size`); elsewhere it holds its numbers and converts to NumPy with `np.asarray`.

    It has NumPy's operators, indices and methods; elements are changed by `x.at[...]`, which gives another array.

    >>> import harp.numpy as hnp
    >>> x = hnp.asarray([1.0, 2.0, 4.0])
    >>> x[1:] * 2, x.sum(), x.at[0].set(9.0)
    (Array([4., 8.]), Array(7.), Array([9., 2., 4.]))
    """

    __slots__ = ("__weakref__", "_level", "_node", "_value", "_weak")
    __array_priority__ = 1000  # numpy_array + harp_array is harp's

    def __init__(
        self, node: Node | None, value: NDArray | None, level: Level | Donation | None, weak: bool = False
    ) -> None:
        self._node = node
        self._value = value
        self._level = level
        self._weak = weak

    # -- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes; inside a traced function they may be symbolic, which type checkers take for integers,
        as they are outside of one."""
        if self._value is not None:
            return self._value.shape
        return tuple(cast(int, wrap(size)) for size in node_of(self).shape)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The element type as NumPy's object."""
        return self.kind.numpy

    @property
    def kind(self) -> DType:
        """The dtype as harp's own object."""
        value = self._value
        if value is not None:
            found = OF_NUMPY.get(value.dtype)
            return as_dtype(value.dtype) if found is None else found
        return _own_node(self).dtype

    @property
    def weak(self) -> bool:
        """Whether it came from a Python number: it takes the dtype of the array that it meets."""
        return self._weak

    @property
    def ndim(self) -> int:
        """The number of axes."""
        if self._value is not None:
            return self._value.ndim
        return len(_own_node(self).shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        if self._value is not None:
            return self._value.size
        return cast(int, wrap(product(node_of(self).shape)))

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self.kind.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._concrete("its number of bytes").nbytes

    def __sizeof__(self) -> int:
        """The bytes of the object and its elements: what schedulers of tasks ask before they move it."""
        return object.__sizeof__(self) + (0 if self._value is None else self._value.nbytes)

    @property
    def T(self) -> Array:
        """The array with its axes in reverse order."""
        return _BY_NAME["transpose"](self)

    @property
    def mT(self) -> Array:
        """The array with its last two axes swapped."""
        return _BY_NAME["matrix_transpose"](self)

    @property
    def real(self) -> Array:
        """The real parts; the array itself if it is not complex."""
        return _BY_NAME["real"](self)

    @property
    def imag(self) -> Array:
        """The imaginary parts; zeros if it is not complex."""
        return _BY_NAME["imag"](self)

    # -- its numbers

    def _concrete(self, what: str) -> NDArray:
        """The buffer for those who may show it to others: nobody can write to it from now on."""
        value = self._value
        if value is None:
            node = node_of(self)
            value = known(self) if what in (TRUTH, INTEGER) else None
            if value is not None:
                return value
            function = self._level.name if isinstance(self._level, Level) else "a function"
            raise ConcretizationError(message(what, node, function))
        value.setflags(write=False)  # what a program has made is not closed yet
        return value

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ArgumentError(f"len() of an array without axes; .size is its number of elements{where()}")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Array]:
        if self.ndim == 0:
            raise ArgumentError(f"iteration over an array without axes; .ravel() has one{where()}")
        return (self[k] for k in range(len(self)))

    def __contains__(self, item: object) -> bool:
        return bool(_BY_NAME["any"](_BY_NAME["equal"](self, item)))

    def __repr__(self) -> str:
        if self._value is not None:
            return np.array_repr(self._concrete("repr")).replace("array(", "Array(", 1)
        if self._node is None:  # a debugger may ask
            return "Array(donated)"
        sizes = ", ".join(map(repr, resolve_all(self._node.shape)))
        return f"Array({self._node.dtype}[{sizes}], traced)"

    def __format__(self, spec: str) -> str:
        if not spec or self.ndim:
            return repr(self) if spec else str(self)
        return format(self._concrete(TEXT).item(), spec)

    def __str__(self) -> str:
        return str(self._concrete("str")) if self._value is not None else repr(self)

    def __reduce__(self) -> tuple[object, ...]:
        return from_numpy, (self._concrete(PICKLED), self.weak)

    def __deepcopy__(self, memo: dict[int, object]) -> Array:
        return self.__copy__()

    def __copy__(self) -> Array:
        """Another object with the same memory, which stays as it is where this one is donated."""
        return self if self._value is None else Array(None, self._value, None, self._weak)

    # -- it does not change

    def __setitem__(self, key: object, value: object) -> None:
        raise MutationError(
            "arrays do not change; write x = x.at[index].set(value), with .add(value) for +=, or build the new array "
            f"with harp.numpy.where{where()}"
        )

    def __delitem__(self, key: object) -> None:
        self[key] = None

    def __getitem__(self, key: object) -> Array:
        return _BY_NAME["getitem"](self, key)

    @property
    def at(self) -> At[Array]:
        """`x.at[index].set(value)` is a new array with some elements changed; see `harp.trace.array.at.Updates`."""
        return At(self)

    def astype(self, dtype: object, copy: bool = True) -> Array:
        """The array in another dtype. `copy` is NumPy's and changes nothing: arrays do not change."""
        return _BY_NAME["astype"](self, dtype)

    def reshape(self, *shape: object, order: str = "C") -> Array:
        """The same elements with other axes, in row-major order, with the order "F" in column-major order; one size may
        be -1."""
        return _BY_NAME["reshape"](self, shape[0] if len(shape) == 1 else shape, order)

    def transpose(self, *axes: object) -> Array:
        """The array with its axes in this order, or reversed."""
        return _BY_NAME["transpose"](self, axes[0] if len(axes) == 1 else axes or None)


def from_numpy(value: NDArray, weak: bool = False) -> Array:
    """A handle on numbers that nobody else writes to; from now on nobody can, by way of a view of them either."""
    owner: object = value
    while isinstance(owner, np.ndarray):
        owner.setflags(write=False)
        owner = owner.base
    return Array(None, value, None, weak)


def marked(array: Array, weak: bool) -> Array:
    """The same array, weak or not."""
    return array if array.weak is weak else Array(array._node, array._value, array._level, weak)


def traced(node: Node, level: Level, weak: bool = False) -> Array:
    return Array(node, None, level, weak)


def node_of(array: Array) -> Node:
    """The node of an array, for use at the current level. Raises LeakedTracerError for one of another trace."""
    if array._node is None:
        value = array._value
        if value is None:
            raise _gone(array)
        array._node = Constant(Captured(value))
    elif isinstance(array._level, Level):
        level: Level | None = _check_level(array._level)
        while level is not None and level is not array._level:
            level.free[array._node] = None
            level = level.parent
    return array._node


def _own_node(array: Array) -> Node:
    """The node of an array without a buffer, at whatever level."""
    if array._node is None:
        raise _gone(array)
    return array._node


def give_up(array: Array, donation: Donation) -> None:
    """From now on the handle has nothing; others on the same buffer keep it."""
    array._level = donation
    array._node = array._value = None


def _gone(array: Array) -> DonatedError:
    function, argument = array._level if isinstance(array._level, Donation) else ("a function", "an argument")
    return DonatedError(
        f"the array was donated to {function!r} as argument {argument} and is gone; use what that call returned; to "
        f"keep an array, pass np.asarray of it{where()}"
    )


def _check_level(level: Level) -> Level:
    """The level at which an array of this level is used."""
    here = current()
    if level.open and here is not None and here.scope is level.scope:
        return here
    raise LeakedTracerError(
        f"an array traced in {level.name!r} was used outside that function; return it instead of storing it in a "
        f"global, an outer variable or an object{where()}"
    )


def realize(tree: Tree) -> Tree:
    """The tree itself: outside of a trace arrays have their numbers at once, and inside there is nothing to wait for.

    >>> realize({"x": from_numpy(np.ones(2))})
    {'x': Array([1., 1.])}
    """
    return tree

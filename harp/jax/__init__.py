"""JAX's names: a file that was written for it changes its imports only.

    import jax                       ->    import harp.jax as jax
    from jax import numpy as jnp     ->    from harp.jax import numpy as jnp

`python -m harp port FILE...` lists what files use that is not here. What differs is in docs/from-jax.md.

>>> from harp import jax
>>> from harp.jax import numpy as jnp
>>> jax.tree_util.tree_map(jnp.sum, {"a": jnp.ones(3)})
{'a': Array(3.)}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

import harp.debug as debug
import harp.flatten_util as flatten_util
import harp.jax.ad_checkpoint as ad_checkpoint
import harp.jax.example_libraries as example_libraries
import harp.jax.experimental as experimental
import harp.lax as lax
import harp.nn as nn
import harp.nn.image as image
import harp.numpy as numpy
import harp.ops as ops
import harp.random as random
import harp.scipy as scipy
import harp.test_util as test_util
import harp.transforms.autodiff.checkpoint_policies as checkpoint_policies
import harp.tree as tree
import harp.tree_util as tree_util
from harp.backends.devices import device_put
from harp.backends.devices import devices as devices_of
from harp.errors import ArgumentError, ConcretizationError, HarpError, LeakedTracerError
from harp.foreign.callback import pure_callback
from harp.jax.closures import closure_convert
from harp.jax.modules import stand_in
from harp.jax.settings import checking_leaks, config, disable_jit, enable_x64, log_compiles
from harp.numpy.creation import result_type, zeros
from harp.numpy.missing import no_such_name
from harp.numpy.types import finfo, iinfo, isdtype, issubdtype
from harp.trace.array.array import Array
from harp.trace.graph.graph import Graph
from harp.trace.scalar.dtypes import ArraySignature, DTypeLike, as_dtype, bf16
from harp.trace.source_locations import where
from harp.trace.tracer import trace
from harp.trace.trees import map_leaves
from harp.transforms.autodiff.checkpoint import checkpoint
from harp.transforms.autodiff.custom import custom_jvp, custom_vjp
from harp.transforms.autodiff.forward import jvp, linearize
from harp.transforms.autodiff.grad import grad, value_and_grad, vjp
from harp.transforms.batching.vmap import vmap
from harp.transforms.jacobians import hessian, jacfwd, jacrev
from harp.transforms.jit.jit import jit as jit_of
from harp.transforms.staging import eval_shape

__all__ = [
    "Array",
    "Device",
    "ShapeDtypeStruct",
    "ad_checkpoint",
    "block_until_ready",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "closure_convert",
    "config",
    "core",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "dtypes",
    "effects_barrier",
    "enable_x64",
    "errors",
    "eval_shape",
    "example_libraries",
    "experimental",
    "flatten_util",
    "grad",
    "hessian",
    "image",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_jaxpr",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "ops",
    "pmap",
    "process_count",
    "process_index",
    "pure_callback",
    "random",
    "remat",
    "scipy",
    "test_util",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
]

stand_in()
jacobian, remat = jacrev, checkpoint
# Devices are known by their names.
Device = str


# Options of JAX's jit that say how, and not what, it compiles.
_IDLE = frozenset({"inline", "keep_unused"})


def jit(fun: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`harp.jit`, where `inline` and `keep_unused` change nothing, and None is no option; a decorator.

    >>> jit(lambda x: x + 1, inline=True)(1.0)
    Array(2.)
    """
    chosen = {name: option for name, option in options.items() if option is not None and name not in _IDLE}
    return jit_of(**chosen) if fun is None else jit_of(fun, **chosen)


def ShapeDtypeStruct(shape: Any, dtype: DTypeLike) -> ArraySignature:
    """Shape and dtype of an array, as `harp.eval_shape` takes and returns them.

    >>> ShapeDtypeStruct((2, 3), "float32")
    f32[2, 3]
    """
    return ArraySignature(as_dtype(dtype), tuple(shape))


def device_get(x: Any) -> Any:
    """The tree with NumPy arrays in place of arrays.

    >>> device_get({"a": 1.0})
    {'a': array(1.)}
    """
    return map_leaves(np.asarray, x)


def block_until_ready(x: Any) -> Any:
    """The tree itself, when the numbers of all of its arrays are there, also of those on OpenCL devices."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x


def effects_barrier() -> None:
    """Changes nothing: what a program prints, and its calls of Python, are done when the program returns."""


def typeof(x: Any) -> Any:
    """Shape and dtype of an array or a number.

    >>> typeof(np.ones((2, 3)))
    f64[2, 3]
    """
    return eval_shape(lambda x: x, x)


def make_jaxpr(fun: Callable[..., Any]) -> Callable[..., Graph]:
    """A function that gives the graph of `fun` for its arguments: arrays, numbers and signatures.

    >>> print(make_jaxpr(lambda x: x * x)(1.0))
    %0 = f64[] input x
    %1 = f64[] map (%0, %0) -> mul(x0, x1)
    return %1
    """
    return lambda *args: trace(fun, *args)


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function of arrays like these, of which shapes and dtypes are used only.

    >>> linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6.),)
    """

    def like(leaf: Any) -> Any:
        return zeros(leaf.shape, leaf.dtype) if hasattr(leaf, "shape") else leaf

    points = map_leaves(like, primals)
    _, pullback = vjp(fun, *points)
    transposed: Callable[[Any], tuple[Any, ...]] = pullback
    return transposed


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns its value and the function from a cotangent to those of the arguments; a decorator.

    >>> import harp
    >>> clipped = custom_gradient(lambda x: (x * x, lambda cotangent: cotangent * 0.5))
    >>> harp.grad(clipped)(3.0)
    Array(0.5)
    """

    def value(*args: Any) -> Any:
        return fun(*args)[0]

    def pull(args: tuple[Any, ...], cotangent: Any) -> Any:
        found = fun(*args)[1](cotangent)
        return found if isinstance(found, tuple) else (found,)

    made = custom_vjp(value)
    made.defvjp(lambda *args: (value(*args), args), pull)
    return made


def pmap(
    fun: Callable[..., Any],
    axis_name: object = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: Any = (),
    donate_argnums: Any = (),
    axis_size: object = None,
) -> Callable[..., Any]:
    """`jit` of `vmap`: the examples are computed on one device, by all of its cores, whatever their number.

    >>> import harp.numpy as hnp
    >>> pmap(lambda x: x - lax.pmean(x, "devices"), "devices")(hnp.array([1.0, 3.0]))
    Array([-1.,  1.])
    """
    chosen = static_broadcasted_argnums
    static = (chosen,) if isinstance(chosen, int) else tuple(chosen)

    @wraps(fun)
    def mapped(*args: Any) -> Any:
        given = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        same = {k % len(args) for k in static}
        axes = tuple(None if k in same else axis for k, axis in enumerate(given))
        return vmap(fun, axes, out_axes, axis_size, axis_name)(*args)

    return jit_of(mapped, static_argnums=static, donate_argnums=donate_argnums)


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Changes nothing: harp names what it computes by lines of the program."""
    yield


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """The function itself, see `named_scope`."""
    return fun


def default_backend() -> str:
    """Where programs run that do not say otherwise."""
    return "cpu"


def devices(backend: str | None = None) -> tuple[str, ...]:
    """The names of devices: "cpu", then those of OpenCL, or of these those of one backend. Raises ArgumentError for
    a backend that has none.

    >>> devices("cpu")
    ('cpu',)
    """
    known = (backend,) if backend == "cpu" else devices_of()  # those of OpenCL are tried
    found = tuple(name for name in known if backend in (None, name.partition(":")[0]))
    if not found:
        raise ArgumentError(f"there is no device of the backend {backend!r}, only {', '.join(devices_of())}{where()}")
    return found


local_devices = devices


def device_count(backend: str | None = None) -> int:
    """1: a program runs on one device, and on all cores. Raises ArgumentError for a backend without devices."""
    if backend is not None:
        devices(backend)
    return 1


local_device_count = device_count


def process_count() -> int:
    """1: harp is one process."""
    return 1


def process_index() -> int:
    """0, that of the one process."""
    return 0


class _OfTraced(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Array) and instance._value is None and instance._level is not None


class Tracer(metaclass=_OfTraced):
    """`isinstance(x, Tracer)`: whether an array belongs to a function that is being traced."""


core = SimpleNamespace(Tracer=Tracer)


dtypes = SimpleNamespace(
    bfloat16=bf16,
    canonicalize_dtype=lambda dtype: as_dtype(dtype).numpy,
    finfo=finfo,
    float0=np.dtype([("float0", np.void, 0)]),
    iinfo=iinfo,
    isdtype=isdtype,
    issubdtype=issubdtype,
    prng_key=np.flexible,  # of keys that are no integers, which harp does not have
    result_type=result_type,
)
# The errors of harp that programs for JAX know by these names.
errors = SimpleNamespace(
    ConcretizationTypeError=ConcretizationError,
    JaxRuntimeError=HarpError,
    NonConcreteBooleanIndexError=ConcretizationError,
    TracerArrayConversionError=ConcretizationError,
    TracerBoolConversionError=ConcretizationError,
    TracerIntegerConversionError=ConcretizationError,
    UnexpectedTracerError=LeakedTracerError,
)
typing = SimpleNamespace(ArrayLike=object, DTypeLike=DTypeLike)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise no_such_name(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

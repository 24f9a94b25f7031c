"""harp compiles functions written in NumPy style: traced once, differentiated as graphs, one C program for all sizes.

`jit` compiles, `grad`, `vjp`, `jvp` and others differentiate, `vmap` maps over batches, `harp.numpy` is the array
namespace. Arguments are NumPy arrays; sizes may change from call to call.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harp import sources as _sources  # noqa: F401, isort: skip (before the files that it watches)
from harp import errors, numpy
from harp.backends.devices import default_device, device_put, devices
from harp.backends.options import CompileOptions
from harp.config import set_threads, stats
from harp.locks import importing as _importing
from harp.trace.array.array import Array, realize
from harp.trace.graph.graph import Graph
from harp.trace.scalar.dtypes import (
    ArraySignature,
    DType,
    bf16,
    bool_,
    c64,
    c128,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from harp.trace.sizes.signature import GraphSignature
from harp.trace.sizes.size import Size
from harp.trace.tracer import trace
from harp.transforms.jit.jit import JitFunction, jit

if TYPE_CHECKING:
    from harp import debug, lax, random, tree
    from harp.foreign.callback import pure_callback
    from harp.foreign.kernel import Kernel, kernel
    from harp.lax.associative import associative_scan
    from harp.lax.mapping import map
    from harp.transforms.autodiff import checkpoint_policies
    from harp.transforms.autodiff.checkpoint import checkpoint
    from harp.transforms.autodiff.checkpoint_policies import checkpoint_name
    from harp.transforms.autodiff.custom import custom_jvp, custom_vjp
    from harp.transforms.autodiff.forward import jvp, linearize
    from harp.transforms.autodiff.grad import grad, stop_gradient, value_and_grad, vjp
    from harp.transforms.batching.vmap import vmap
    from harp.transforms.control.conditional import cond, switch, while_loop
    from harp.transforms.control.scan import fori_loop, scan
    from harp.transforms.jacobians import hessian, hvp, jacfwd, jacrev, value_and_jacfwd, value_and_jacrev
    from harp.transforms.staging import eval_shape

__version__ = "0.1.0"

__all__ = [
    "Array",
    "ArraySignature",
    "CompileOptions",
    "DType",
    "Graph",
    "GraphSignature",
    "JitFunction",
    "Kernel",
    "Size",
    "associative_scan",
    "bf16",
    "bool_",
    "c64",
    "c128",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "default_device",
    "device_put",
    "devices",
    "errors",
    "eval_shape",
    "f16",
    "f32",
    "f64",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "i8",
    "i16",
    "i32",
    "i64",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "kernel",
    "lax",
    "linearize",
    "map",
    "numpy",
    "pure_callback",
    "random",
    "realize",
    "scan",
    "set_threads",
    "stats",
    "stop_gradient",
    "switch",
    "trace",
    "tree",
    "u8",
    "u16",
    "u32",
    "u64",
    "value_and_grad",
    "value_and_jacfwd",
    "value_and_jacrev",
    "vjp",
    "vmap",
    "while_loop",
]

# Functions whose module is imported when one of them is first used, as `random` is: not every program needs them.
_LATER = {
    **dict.fromkeys(("grad", "stop_gradient", "value_and_grad", "vjp"), "harp.transforms.autodiff.grad"),
    **dict.fromkeys(("jvp", "linearize"), "harp.transforms.autodiff.forward"),
    "checkpoint": "harp.transforms.autodiff.checkpoint",
    "checkpoint_name": "harp.transforms.autodiff.checkpoint_policies",
    **dict.fromkeys(("custom_jvp", "custom_vjp"), "harp.transforms.autodiff.custom"),
    **dict.fromkeys(
        ("hessian", "hvp", "jacfwd", "jacrev", "value_and_jacfwd", "value_and_jacrev"), "harp.transforms.jacobians"
    ),
    "associative_scan": "harp.lax.associative",
    "map": "harp.lax.mapping",
    "pure_callback": "harp.foreign.callback",
    **dict.fromkeys(("Kernel", "kernel"), "harp.foreign.kernel"),
    "eval_shape": "harp.transforms.staging",
    "vmap": "harp.transforms.batching.vmap",
    **dict.fromkeys(("fori_loop", "scan"), "harp.transforms.control.scan"),
    **dict.fromkeys(("cond", "switch", "while_loop"), "harp.transforms.control.conditional"),
}
_MODULES = {
    **{name: f"harp.{name}" for name in ("debug", "lax", "random", "tree")},
    "checkpoint_policies": "harp.transforms.autodiff.checkpoint_policies",
}


def __getattr__(name: str) -> object:
    if name not in _LATER and name not in _MODULES:
        raise import_module("harp.numpy.missing").no_such_name("harp", name, __all__)
    with _importing:
        if name in _MODULES:
            return import_module(_MODULES[name])
        value = globals()[name] = getattr(import_module(_LATER[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

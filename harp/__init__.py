"""harp compiles functions written in NumPy style: traced once, differentiated as graphs, one C program for all sizes.

`jit` compiles, `grad`, `vjp`, `jvp` and others differentiate, `vmap` maps over batches, `harp.numpy` is the array
namespace. Arguments are NumPy arrays; sizes may change from call to call.
"""

from __future__ import annotations

from harp import sources as _sources  # noqa: F401, isort: skip (before the files that it watches)
from harp.lazy import Names as _Names
from harp.lazy import namespace as _namespace
from harp.trace.tracebacks import shorten_uncaught as _shorten_uncaught
from harp.trace.tracer import trace as trace
from harp.transforms.jit.jit import jit as jit
from harp.transforms.jit.loops import by_program as _by_program
from harp.transforms.running import compile_long_loops as _compile_long_loops

__version__ = "0.1.0"

_compile_long_loops(_by_program)
_shorten_uncaught()

# All names. All but two functions are imported when they are first used: not every program needs them.
_NAMES = _Names(
    {
        "harp.": "debug errors extend flatten_util jax lax nn numpy ops optim random scipy test_util tree tree_util",
        "harp.backends.devices": "default_device device_put devices",
        "harp.backends.options": "CompileOptions",
        "harp.backends.toolchain.background": "wait_for_compilers",
        "harp.config": "set_threads stats",
        "harp.foreign.callback": "pure_callback",
        "harp.foreign.kernel": "Kernel kernel",
        "harp.lax.associative": "associative_scan",
        "harp.lax.mapping": "map",
        "harp.trace.array.array": "Array realize",
        "harp.trace.default_dtype": "default_dtype",
        "harp.trace.graph.graph": "Graph",
        "harp.trace.scalar.dtypes": "ArraySignature bf16 bool_ c128 c64 DType f16 f32 f64 f8_e3m4 f8_e4m3 "
        "f8_e4m3b11fnuz f8_e4m3fn f8_e4m3fnuz f8_e5m2 f8_e5m2fnuz i16 i32 i4 i64 i8 u16 u32 u4 u64 u8",
        "harp.trace.sizes.signature": "GraphSignature",
        "harp.trace.sizes.size": "Size",
        "harp.trace.tracer": "trace",
        "harp.transforms.autodiff.": "checkpoint_policies",
        "harp.transforms.autodiff.checkpoint": "checkpoint",
        "harp.transforms.autodiff.checkpoint_policies": "checkpoint_name",
        "harp.transforms.autodiff.custom": "custom_jvp custom_vjp",
        "harp.transforms.autodiff.forward": "jvp linearize",
        "harp.transforms.autodiff.grad": "grad stop_gradient value_and_grad vjp",
        "harp.transforms.batching.vmap": "vmap",
        "harp.transforms.control.conditional": "cond switch while_loop",
        "harp.transforms.control.scan": "fori_loop scan",
        "harp.transforms.jacobians": "hessian hvp jacfwd jacrev value_and_jacfwd value_and_jacrev",
        "harp.transforms.jit.export": "export",
        "harp.transforms.jit.jit": "jit JitFunction",
        "harp.transforms.staging": "eval_shape",
    }
)
__getattr__, __dir__, __all__ = _namespace(globals(), _NAMES)

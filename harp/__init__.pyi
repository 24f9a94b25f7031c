# Written by tests/types/stubs.py.
from harp import (
    debug as debug,
    errors as errors,
    extend as extend,
    flatten_util as flatten_util,
    jax as jax,
    lax as lax,
    nn as nn,
    numpy as numpy,
    ops as ops,
    optim as optim,
    random as random,
    scipy as scipy,
    test_util as test_util,
    tree as tree,
    tree_util as tree_util,
)
from harp.backends.devices import default_device as default_device, device_put as device_put, devices as devices
from harp.backends.options import CompileOptions as CompileOptions
from harp.backends.toolchain.background import wait_for_compilers as wait_for_compilers
from harp.config import set_threads as set_threads, stats as stats
from harp.foreign.callback import pure_callback as pure_callback
from harp.foreign.kernel import Kernel as Kernel, kernel as kernel
from harp.lax.associative import associative_scan as associative_scan
from harp.lax.mapping import map as map
from harp.trace.array.array import Array as Array, realize as realize
from harp.trace.default_dtype import default_dtype as default_dtype
from harp.trace.graph.graph import Graph as Graph
from harp.trace.scalar.dtypes import (
    ArraySignature as ArraySignature,
    DType as DType,
    bf16 as bf16,
    bool_ as bool_,
    c128 as c128,
    c64 as c64,
    f16 as f16,
    f32 as f32,
    f64 as f64,
    f8_e3m4 as f8_e3m4,
    f8_e4m3 as f8_e4m3,
    f8_e4m3b11fnuz as f8_e4m3b11fnuz,
    f8_e4m3fn as f8_e4m3fn,
    f8_e4m3fnuz as f8_e4m3fnuz,
    f8_e5m2 as f8_e5m2,
    f8_e5m2fnuz as f8_e5m2fnuz,
    i16 as i16,
    i32 as i32,
    i4 as i4,
    i64 as i64,
    i8 as i8,
    u16 as u16,
    u32 as u32,
    u4 as u4,
    u64 as u64,
    u8 as u8,
)
from harp.trace.sizes.signature import GraphSignature as GraphSignature
from harp.trace.sizes.size import Size as Size
from harp.trace.tracer import trace as trace
from harp.transforms.autodiff import checkpoint_policies as checkpoint_policies
from harp.transforms.autodiff.checkpoint import checkpoint as checkpoint
from harp.transforms.autodiff.checkpoint_policies import checkpoint_name as checkpoint_name
from harp.transforms.autodiff.custom import custom_jvp as custom_jvp, custom_vjp as custom_vjp
from harp.transforms.autodiff.forward import jvp as jvp, linearize as linearize
from harp.transforms.autodiff.grad import (
    grad as grad,
    stop_gradient as stop_gradient,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from harp.transforms.batching.vmap import vmap as vmap
from harp.transforms.control.conditional import cond as cond, switch as switch, while_loop as while_loop
from harp.transforms.control.scan import fori_loop as fori_loop, scan as scan
from harp.transforms.jacobians import (
    hessian as hessian,
    hvp as hvp,
    jacfwd as jacfwd,
    jacrev as jacrev,
    value_and_jacfwd as value_and_jacfwd,
    value_and_jacrev as value_and_jacrev,
)
from harp.transforms.jit.export import export as export
from harp.transforms.jit.jit import JitFunction as JitFunction, jit as jit
from harp.transforms.staging import eval_shape as eval_shape

__version__: str

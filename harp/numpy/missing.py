"""What is said about a name that a namespace of harp does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module

import numpy as np

# Names of JAX and NumPy, and what to write instead.
_INSTEAD = {
    "harp": {
        "array": "write harp.numpy.array",
        "block_until_ready": "write x.block_until_ready(), or leave it out: a call returns when its results are there, "
        "except on OpenCL devices",
        "compile": "write jit",
        "device_get": "np.asarray gives the NumPy array of a result",
        "disable_jit": "call the function without jit, or write harp.jax.disable_jit",
        "jacobian": "write jacfwd or jacrev",
        "make_jaxpr": "write harp.trace",
        "profiler": "write jitted.profile(*args), or python -m harp --help",
        "no_grad": "gradients are computed only where harp.grad asks; harp.stop_gradient stops them",
        "pmap": "write vmap; programs run on all cores, see harp.set_threads",
        "random_key": "write harp.random.key",
        "remat": "write checkpoint",
        "ShapeDtypeStruct": 'write a dtype with sizes, such as harp.f32["n", 3]',
        "tensor": "write harp.numpy.array",
        "Tensor": "write harp.Array",
        "tree_map": "write harp.tree.map",
    },
    "harp.jax": {
        "export": "write harp.export, which writes C",
        **dict.fromkeys(("sharding", "shard_map", "make_mesh"), "a program runs on one device, on all of its cores"),
    },
    "harp.jax.experimental": {
        "io_callback": "write harp.debug.callback, whose calls happen in order, or harp.pure_callback for results",
        "jet": "write harp.jvp of harp.jvp for higher derivatives",
        "pallas": "write harp.kernel for kernels of your own in C",
        "sparse": "write products with harp.ops.segment_sum, or the dense arrays",
        **dict.fromkeys(("mesh_utils", "multihost_utils", "pjit", "shard_map"), "a program runs on one device"),
    },
    "harp.jax.example_libraries": {"stax": "write functions of parameters; harp.nn has the layers"},
    "harp.lax": {
        "linalg": "write harp.numpy.linalg, whose solve_triangular is SciPy's",
        "fft": "write harp.numpy.fft.fft, ifft, rfft or irfft",
        **dict.fromkeys(("approx_max_k", "approx_min_k"), "write top_k, which is exact"),
    },
    "harp.numpy.linalg": {
        "cho_solve": "write harp.scipy.linalg.cho_solve",
        "triangular_solve": "write solve_triangular",
    },
    "harp.random": {
        **dict.fromkeys(("default_rng", "seed", "manual_seed"), "write key = harp.random.key(seed)"),
        **dict.fromkeys(("rand", "random", "random_sample"), "write uniform(key, shape)"),
        **dict.fromkeys(("randn", "standard_normal"), "write normal(key, shape)"),
        "shuffle": "write permutation",
    },
    "harp.nn": {
        "functional": "its functions are in harp.nn and harp.numpy; docs/from-pytorch.md has a table",
        **dict.fromkeys(
            ("BatchNorm1d", "BatchNorm2d", "Conv1d", "Conv2d", "Dropout", "Embedding", "LayerNorm", "Linear", "LSTM"),
            "a layer is a function of parameters that you keep; docs/from-pytorch.md shows how",
        ),
        **dict.fromkeys(
            ("Module", "Parameter", "Sequential"),
            "a model is a function of a tree of parameters; docs/from-pytorch.md shows how",
        ),
    },
    "harp.numpy": {
        "cat": "write concatenate",
        **dict.fromkeys(("loadtxt", "genfromtxt"), "use NumPy's, whose arrays harp takes"),
        **dict.fromkeys(("savetxt", "savez_compressed"), "use NumPy's, which take results of harp"),
        "one_hot": "write harp.nn.one_hot",
        "random": "write harp.random, with keys",
        "tensor": "write array",
        **{name: f"write {name}32 or {name}64, or Python's {name}" for name in ("float", "int")},
    },
}


def instead(module: str, name: str) -> str | None:
    """What is said of a name of another library: harp.jax has what harp itself has, too."""
    rows = _INSTEAD["harp"] | _INSTEAD[module] if module == "harp.jax" else _INSTEAD.get(module, {})
    return None if name not in rows else f"{module}.{name} is not there: {rows[name]}"


def no_such_name(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name of a namespace of harp: whether NumPy has it, and the nearest name that is there."""
    text = instead(module, name)
    if text is not None:
        return AttributeError(text, name=name)
    of_numpy: object = np if module.startswith("harp.numpy") else None
    for part in module.split(".")[2:] if of_numpy else ():  # linalg
        of_numpy = getattr(of_numpy, part)
    public = [] if name.startswith("_") else [k for k in known if not k.startswith("_")]  # tools ask for such names
    longer = [k for k in public if len(name) > 3 and k.startswith(name)]
    if module == "harp" and not name.startswith("_") and name in getattr(import_module("harp.jax"), "__all__", ()):
        return AttributeError(f"harp.{name} is not there: it is harp.jax.{name}", name=name)
    if module == "harp" and not name.startswith("_") and name in import_module("harp.numpy").__all__:
        return AttributeError(f"harp.{name} is not there: write harp.numpy.{name}", name=name)
    nearest = longer or difflib.get_close_matches(name, public, n=1, cutoff=0.7)
    hint = f"; the nearest name there is {nearest[0]!r}" if nearest else ""
    if of_numpy is not None and name in dir(of_numpy):
        text = f"{module}.{name} is not there yet{hint}; docs/from-numpy.md lists what is"
    else:
        text = f"module {module!r} has no attribute {name!r}{hint}"
    return AttributeError(text, name=name)

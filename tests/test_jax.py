"""JAX's names: segments, trees, vectors of trees, and the module that stands for `jax`."""

import dataclasses
import functools
import importlib
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from harp.jax.experimental.ode import odeint

import harp
from harp import flatten_util, jax, ops, port, tree_util
from harp.errors import ArgumentError, ConcretizationError, ShapeError
from harp.jax import numpy as jnp
from harp.trace.keywords import explain

DATA = np.array([[1.0, 5.0], [2.0, 0.5], [4.0, 3.0], [8.0, 7.0]])
IDS = np.array([2, 0, 2, -1])
SEGMENTS = {
    "segment_sum": [[2.0, 0.5], [0.0, 0.0], [5.0, 8.0]],
    "segment_prod": [[2.0, 0.5], [1.0, 1.0], [4.0, 15.0]],
    "segment_max": [[2.0, 0.5], [-np.inf, -np.inf], [4.0, 5.0]],
    "segment_min": [[2.0, 0.5], [np.inf, np.inf], [1.0, 3.0]],
}


def test_segments():
    @harp.jit
    def all_of(data, ids, like):
        return {name: getattr(ops, name)(data, ids, like.shape[0]) for name in SEGMENTS}

    found = all_of(DATA, IDS, np.zeros(3))
    for name, expected in SEGMENTS.items():
        assert np.array_equal(found[name], expected), name
        assert np.array_equal(getattr(ops, name)(DATA, IDS, unique_indices=False), expected), name
    assert np.array_equal(all_of(DATA, IDS, np.zeros(1))["segment_sum"], [[2.0, 0.5]])  # number 2 is left out
    assert all_of.compilations == 1
    grown = harp.grad(lambda data: (ops.segment_sum(data, IDS, 3)[2] * np.array([1.0, 10.0])).sum())(DATA)
    assert np.array_equal(grown, [[1, 10], [0, 0], [1, 10], [0, 0]])
    assert ops.segment_max(np.array([3, 1]), np.array([0, 2])).tolist() == [3, -(2**63), 1]
    assert ops.segment_sum(np.zeros((0, 2)), np.zeros(0, int)).shape == (0, 2)


def test_segments_that_do_not_fit():
    with pytest.raises(ShapeError, match="segment_sum combines along the first axis"):
        ops.segment_sum(DATA, IDS[None], 3)
    with pytest.raises(ShapeError, match="one of segment_ids for each element of data"):
        ops.segment_sum(DATA, IDS[:2], 3)
    with pytest.raises(TypeError, match="segment_ids of segment_sum are integers"):
        ops.segment_sum(DATA, IDS * 1.0, 3)
    with pytest.raises(TypeError, match="segment_max takes no data of complex128"):
        ops.segment_max(DATA * 1j, IDS, 3)
    with pytest.raises(harp.errors.ConcretizationError, match="pass num_segments"):
        harp.jit(lambda ids: ops.segment_sum(DATA, ids))(IDS)
    with pytest.raises(ArgumentError, match="num_segments of segment_max is -1"):
        ops.segment_max(DATA, IDS, -1)
    with pytest.raises(TypeError, match="no argument 'sorted'"):
        ops.segment_sum(DATA, IDS, sorted=True)


def test_a_tree_as_a_vector():
    tree = {"w": np.arange(6.0, dtype=np.float32).reshape(2, 3), "n": np.array([7, 8]), "s": 9.0}
    flat, unravel = flatten_util.ravel_pytree(tree)
    assert np.array_equal(flat, [7, 8, 9, 0, 1, 2, 3, 4, 5])
    again = unravel(flat)
    assert all(np.array_equal(again[k], tree[k]) for k in tree)
    assert [again[k].dtype for k in "wn"] == [np.float32, np.int64]
    with pytest.raises(ShapeError, match="9 elements in a vector, but unravel is given 8"):
        unravel(flat[1:])
    assert flatten_util.ravel_pytree(())[0].shape == (0,)

    @harp.jit
    def doubled(tree):
        flat, unravel = flatten_util.ravel_pytree(tree)
        return unravel(2 * flat)

    for n in (0, 1, 4):
        given = {"a": np.ones((n, 2)), "b": np.ones(n)}
        assert all(np.array_equal(v, 2 * given[k]) for k, v in doubled(given).items())
    assert doubled.compilations == 1


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten(self):
        return (self.a,), self.b

    @classmethod
    def tree_unflatten(cls, b, parts):
        return cls(*parts, b)


class Keyed(Pair):
    def tree_flatten_with_keys(self):
        return ((tree_util.GetAttrKey("a"), self.a),), self.b


class Fixed:
    pass


@dataclasses.dataclass
class Layer:
    w: object
    name: str = "layer"


@dataclasses.dataclass
class Other:
    w: object
    name: str = dataclasses.field(default="other", metadata={"static": True})


def test_classes_are_trees():
    tree_util.register_pytree_node_class(Pair)
    tree_util.register_pytree_with_keys_class(Keyed)
    tree_util.register_dataclass(Layer, data_fields=["w"], meta_fields=["name"])
    tree_util.register_dataclass(Other)
    tree_util.register_static(Fixed)
    for tree in (Pair(1.0, "b"), Keyed(1.0, "b"), Layer(1.0), Other(1.0)):
        assert tree_util.tree_leaves(tree) == [1.0]
        again = tree_util.tree_map(lambda x: x + 1, tree)
        assert tree_util.tree_leaves(again) == [2.0]
        assert getattr(again, "b", None) == "b" or again.name in ("layer", "other")
    assert tree_util.tree_leaves([Fixed()]) == []


def test_no_fields_are_dropped():
    with pytest.raises(ArgumentError, match="drops no fields of Other"):
        tree_util.register_dataclass(Other, drop_fields=["name"])


def test_partial_is_a_tree():
    def scaled(w, x, b=0.0):
        return w * x + b

    f = tree_util.Partial(scaled, 2.0, b=np.ones(2))
    assert len(tree_util.tree_leaves(f)) == 2
    assert np.array_equal(harp.jit(lambda f, x: f(x))(f, 3.0), [7.0, 7.0])
    slope = harp.grad(lambda f: f(3.0).sum())(f)
    assert float(slope.args[0]) == 6.0 and np.array_equal(slope.keywords["b"], [1.0, 1.0])


def test_structures():
    structure = tree_util.tree_structure({"a": (1, 2)})
    leaf = tree_util.tree_structure(1)
    assert tree_util.treedef_is_leaf(leaf) and not tree_util.treedef_is_leaf(structure)
    assert tree_util.treedef_tuple([leaf, structure]) == tree_util.tree_structure((0, {"a": (1, 2)}))
    assert tree_util.treedef_children(structure) == [tree_util.tree_structure((1, 2))]
    assert tree_util.tree_unflatten(structure, [3, 4]) == {"a": (3, 4)}
    assert not tree_util.all_leaves([{"a": 1}]) and tree_util.all_leaves([1, "a"])


def test_definitions_of_trees():
    tree = {"a": (1, None), "b": [2, {"c": 3}]}
    leaves, definition = tree_util.tree_flatten(tree)
    assert repr(definition) == "PyTreeDef({'a': (*, None), 'b': [*, {'c': *}]})"
    assert repr(tree_util.tree_structure(1)) == "PyTreeDef(*)"
    assert (definition.num_leaves, definition.num_nodes) == (3, 8)
    assert definition.unflatten(leaves) == tree
    assert definition == tree_util.tree_structure(definition.unflatten([4, 5, 6]))
    assert hash(definition) == hash(tree_util.tree_structure(tree))
    assert [part.num_leaves for part in definition.children()] == [1, 2]
    assert definition.flatten_up_to({"a": ([7], None), "b": [8, {"c": (9,)}]}) == [[7], 8, (9,)]
    with pytest.raises(ArgumentError, match="does not begin as PyTreeDef"):
        definition.flatten_up_to({"a": 1})
    with pytest.raises(ArgumentError, match="has 3 leaves"):
        definition.unflatten([1])
    # It is no tree itself, and of the structures that paths and gradients give.
    assert tree_util.tree_leaves(definition) == [definition]
    assert isinstance(tree_util.tree_flatten_with_path(tree)[1], tree_util.PyTreeDef)


@pytest.mark.parametrize("product", [jnp.matmul, jnp.dot, jnp.inner, jnp.vdot, jnp.tensordot, "einsum"])
def test_products_have_dtypes_of_their_own(product):
    """Sums are made in the wider dtype: of 300 products of small integers, 8 bits are too few."""
    a = np.full(300, 3, np.int8)
    call = product
    if product is jnp.tensordot:
        call = lambda *args, **kw: jnp.tensordot(*args, axes=1, **kw)
    if product == "einsum":
        call = lambda *args, **kw: jnp.einsum("i,i->", *args, **kw)
    wide = call(a, a, precision="highest", preferred_element_type=np.int32)
    assert wide.dtype == np.int32 and int(wide) == 2700
    assert call(a, a, precision=jax.lax.Precision.HIGHEST).dtype == np.int8
    assert call(2.0 * a, a, preferred_element_type="float32").dtype == np.float32


@pytest.mark.parametrize("modes", [["fwd"], ["rev"], ["fwd", "rev"]])
def test_derivatives_are_checked(modes):
    check = jax.test_util.check_grads
    tree = {"w": np.array([[0.5, -1.0], [2.0, 0.1]]), "n": 3, "z": np.array([1 + 2j])}
    check(lambda t: (jnp.sin(t["w"]) @ t["w"], jnp.abs(t["z"]) ** 2 * t["n"]), (tree,), 2, modes=modes)
    check(lambda x: jnp.exp(x), (np.float32(0.3),), 2, modes)

    @jax.custom_jvp
    def wrong(x):
        return jnp.sin(x)

    wrong.defjvp(lambda x, t: (wrong(*x), 1.1 * jnp.cos(x[0]) * t[0]))
    with pytest.raises(AssertionError, match="against differences"):
        check(wrong, (0.5,), 1, modes)
    nearly = lambda x: jnp.where(x > 0, wrong(x) + 0.0, x) - 0.1 * jax.lax.stop_gradient(jnp.sin(x))
    with pytest.raises(AssertionError):
        check(nearly, (0.5,), 1, modes)
    with pytest.raises(ArgumentError, match="'fwd' and 'rev', not 'both'"):
        check(jnp.sin, (0.5,), 1, ["both"])


def test_names_that_change_nothing_here():
    doubled = jax.jit(lambda x, n: x * n, static_argnums=1, inline=True, keep_unused=True, donate_argnums=None)
    assert float(doubled(2.0, 3)) == 6
    assert float(jax.jit(inline=True)(jnp.sin)(0.0)) == 0
    with jax.enable_x64(), jax.checking_leaks(), jax.log_compiles():
        assert jax.dtypes.canonicalize_dtype("float64") == np.float64
    with pytest.raises(ArgumentError, match="float64 is there always"), jax.enable_x64(False):
        pass
    assert jax.typeof(np.ones((2, 3), "float32")) == jax.ShapeDtypeStruct((2, 3), "float32")
    assert jax.dtypes.result_type(np.float32, np.float64) == np.float64
    assert jax.dtypes.issubdtype(np.float32, np.floating)
    assert isinstance(jax.devices()[0], jax.Device)
    assert float(jax.lax.cond(True, lambda x: x + 1, lambda x: x, operand=1.0)) == 2
    assert jax.lax.cond(False, lambda _: 1, lambda _: 2, operand=None) == 2


def test_the_module_stands_for_jax():
    @jax.jit
    def loss(w, x):
        assert isinstance(w, jax.Array) and isinstance(w, jax.core.Tracer)
        return jnp.sum(jax.nn.silu(x @ w))

    w, x = np.ones(3), np.ones((2, 3))
    assert not isinstance(jnp.ones(2), jax.core.Tracer)
    with jax.named_scope("layer"):
        value, slope = jax.named_call(jax.value_and_grad(loss))(w, x)
    assert isinstance(jax.device_get({"a": slope})["a"], np.ndarray)
    assert jax.block_until_ready(value) is value
    assert jax.eval_shape(loss, jax.ShapeDtypeStruct((3,), "float64"), x).shape == ()
    assert "input" in str(jax.make_jaxpr(loss)(w, x))
    (back,) = jax.linear_transpose(lambda v: x @ v, jax.ShapeDtypeStruct((3,), "float64"))(np.array([1.0, 2.0]))
    assert np.array_equal(back, [3.0, 3.0, 3.0])
    assert np.array_equal(jax.jacobian(lambda v: x @ v)(w), x)
    assert (jax.device_count(), jax.process_index(), jax.process_count(), jax.default_backend()) == (1, 0, 1, "cpu")


def test_gradients_of_ones_own():
    @jax.custom_gradient
    def clipped(x, y):
        return x * y, lambda cotangent: (jnp.clip(cotangent * y, -1, 1), cotangent * x)

    for gradient in (jax.grad(clipped, (0, 1)), jax.jit(jax.grad(clipped, (0, 1)))):
        assert [float(c) for c in gradient(2.0, 50.0)] == [1.0, 2.0]


def test_settings():
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platform_name", "cpu")
    with pytest.raises(ArgumentError, match="jax_enable_x64=False: float64 is there always"):
        jax.config.update("jax_enable_x64", False)
    with pytest.raises(ArgumentError, match="jax_traceback=1: see docs"):
        jax.config.update("jax_traceback", 1)


def test_every_name_is_there():
    for module in (jax, harp.nn, tree_util):
        for name in module.__all__:
            assert getattr(module, name) is not None


SOURCE = """
import jax, numpy
import jax.numpy as jnp
from jax import lax, tree_util as tu
from jax.experimental import pallas
y = jnp.linalg.det(numpy.ones(3)).astype(jnp.float32) + lax.no_such_name(1, "i") + jax.nn.gelu(jax.random.key(0).shape)
tu.tree_map(jax.local_devices()[0].platform)
"""


def test_port(tmp_path, capsys):
    used = set(port.names_used(SOURCE))
    assert {
        "jax.numpy.linalg.det",
        "jax.numpy.float32",
        "jax.lax.no_such_name",
        "jax.nn.gelu",
        "jax.tree_util.tree_map",
    } <= used
    assert not any("numpy.ones" in name for name in used)
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "b.py").write_text("import os")
    (tmp_path / "c.py").write_text("import jax\njax.jit(jax.lax.no_such_name)")
    assert port.main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "    2 files  jax.lax.no_such_name"
    assert lines[1] == "    1 file  jax.experimental.pallas"
    assert lines[-1].endswith("names of JAX in 2 files are in harp.jax")
    (tmp_path / "b.py").write_text("import (")
    assert port.main([str(tmp_path / "b.py")]) == 2
    command = [sys.executable, "-m", "harp", "port", str(tmp_path / "c.py")]
    assert "jax.lax.no_such_name" in subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_arrays_like_signatures():
    like = jax.ShapeDtypeStruct((2, 3), "float32")
    for made, value in ((jnp.zeros_like(like), 0), (jnp.ones_like(like), 1), (jnp.full_like(like, 7), 7)):
        assert made.dtype == np.float32 and np.array_equal(made, np.full((2, 3), value))
    assert jnp.zeros_like(like, dtype=int).dtype == np.int64
    assert jnp.zeros_like(like, shape=(4,)).shape == (4,)
    assert like.sharding is None and jax.typeof(1.0).sharding is None
    assert not jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)


def test_trees_that_differ_are_wrong_values():
    """As in JAX a ValueError."""
    with pytest.raises(ValueError, match="but the first one is"):
        jax.tree.map(jnp.add, {"a": 1}, {"b": 1})


def test_errors_and_devices_by_the_names_of_jax():
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(lambda x: 1 if x > 0 else 2)(1.0)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda x: float(x))(1.0)
    assert jax.devices("cpu") == ("cpu",) and jax.device_count("cpu") == 1 == jax.local_device_count()
    with pytest.raises(ArgumentError, match="no device of the backend 'tpu'"):
        jax.local_devices("tpu")


def test_kinds_of_dtypes():
    assert jnp.iscomplexobj(jnp.complex64) and not jnp.iscomplexobj(jnp.float32)
    assert jnp.isrealobj(jnp.int8) and not jnp.isrealobj(1j)


def test_static_arguments_of_pmap_count_from_the_end_too():
    scaled = jax.pmap(lambda x, names: dict.fromkeys(names, x), static_broadcasted_argnums=-1)
    assert np.array_equal(scaled(np.ones(2), ("a", "b"))["b"], np.ones(2))


def test_functions_without_programs():
    seen = []

    @harp.jit
    def f(x, *, scale=1.0):
        seen.append(type(x).__name__)
        return jax.jit(lambda x: x * scale)(x.at[0].set(float(x[1])))

    x = np.array([1.0, 2.0])
    with jax.disable_jit():
        assert jax.config.jax_disable_jit
        assert np.asarray(f(x, scale=2.0)).tolist() == np.asarray(f(x, scale=2.0)).tolist() == [4, 4]
        with jax.disable_jit(False), pytest.raises(ConcretizationError):
            f(x)
    assert not jax.config.jax_disable_jit and f.compilations == 0 and seen[:2] == ["Array", "Array"]
    jax.config.update("jax_disable_jit", True)
    try:
        assert jax.jit(lambda x: float(x[0]))(x) == 1
    finally:
        jax.config.update("jax_disable_jit", False)
    g = jax.jit(lambda x: x + 1)
    for _ in range(2):
        assert np.asarray(g(x)).tolist() == [2, 3]
        with jax.disable_jit():
            assert np.asarray(g(x)).tolist() == [2, 3]
    assert g.compilations == 1


def test_closures_as_arguments():
    """As in the documentation of JAX: a derivative by what a function given to one with a custom_vjp closes over."""

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def applied(f, x, *closed):
        return f(x, *closed)

    def forward(f, x, *closed):
        return f(x, *closed), (x, closed)

    def backward(f, kept, cotangent):
        x, closed = kept
        return jax.vjp(f, x, *closed)[1](cotangent)

    applied.defvjp(forward, backward)

    def loss(a, x):
        function, closed = jax.closure_convert(lambda x: jnp.sin(a["w"] * x) + a["b"], x)
        assert len(closed) == 2
        return applied(function, x, *closed)

    for g in (jax.grad(loss, argnums=(0, 1)), jax.jit(jax.grad(loss, argnums=(0, 1)))):
        slopes, slope = g({"w": 2.0, "b": 1.0}, 0.5)
        np.testing.assert_allclose([slopes["w"], slopes["b"], slope], [0.5 * np.cos(1), 1, 2 * np.cos(1)])
    function, closed = jax.closure_convert(lambda x: x + np.ones(2), 1.0)
    assert closed == [] and np.asarray(function(1.0)).tolist() == [2, 2]


def test_modules_are_imported_by_the_names_of_jax():
    from harp.jax.flatten_util import ravel_pytree
    from harp.jax.image import resize
    from harp.jax.numpy import linalg
    from harp.jax.scipy.optimize import minimize

    theirs, ours = map(importlib.import_module, ("harp.jax.scipy.special", "harp.scipy.special"))

    assert theirs is ours and ours.__spec__.name == ours.__name__ == "harp.scipy.special"
    assert linalg is harp.numpy.linalg and resize is harp.nn.image.resize
    assert np.allclose(minimize(lambda x: jnp.sum((x - 1.0) ** 2), jnp.zeros(2), method="BFGS").x, 1.0)
    assert ravel_pytree({"a": jnp.ones(2)})[0].shape == (2,)
    with pytest.raises(ModuleNotFoundError, match=r"harp\.jax\.scipy\.nothing"):
        importlib.import_module("harp.jax.scipy.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"harp\.jax\.sharding"):
        importlib.import_module("harp.jax.sharding")


def test_dir_has_public_names_only():
    assert {name for name in dir(jax) if not name.startswith("__")} == set(jax.__all__)
    assert {"numpy", "lax", "grad", "jit", "tree"} <= set(dir(jax))


def test_names_of_modules_and_of_effects():
    from harp.jax.ad_checkpoint import checkpoint, checkpoint_name

    layer = checkpoint(lambda x: checkpoint_name(jnp.sin(x), "kept") ** 2)
    np.testing.assert_allclose(jax.grad(layer)(0.3), np.sin(0.6), rtol=1e-12)
    assert importlib.import_module("harp.jax.experimental.checkify") is jax.experimental.checkify
    assert jax.effects_barrier() is None
    assert port.is_there("jax.experimental.ode.odeint")
    assert not port.is_there("jax.experimental.nothing")


def test_where_without_choices():
    mask = np.array([[True, False], [True, True]])
    assert all(map(np.array_equal, jnp.where(mask), np.where(mask)))
    rows, columns = jax.jit(lambda mask: jnp.where(mask, size=4, fill_value=-1))(mask)
    assert rows.tolist() == [0, 1, 1, -1]
    assert columns.tolist() == [0, 0, 1, -1]
    with pytest.raises(ConcretizationError):
        jax.jit(lambda mask: jnp.where(mask)[0])(mask)
    with pytest.raises(ArgumentError, match="both x and y"):
        jnp.where(mask, 1.0)
    with pytest.raises(ArgumentError, match="where\\(condition\\)"):
        jnp.where(mask, 1.0, 0.0, size=3)


def test_dtypes_equal_those_of_numpy():
    found = jax.eval_shape(lambda x: x, np.ones(3, np.float32)).dtype
    assert all(found == same for same in (np.float32, np.dtype(np.float32), "float32", harp.f32))
    assert not any(found == other for other in (np.float64, np.dtype(">f4"), "float", "f32x", None, 4, harp.f64))
    assert np.float32 == found
    assert harp.bf16 == "bfloat16"
    assert harp.bf16 != np.float32
    named = type("bfloat16", (), {"name": "bfloat16"})
    assert harp.bf16 != named
    assert {harp.f32: 1}[found] == 1


@jax.custom_vjp
def product(x, y):
    return x * y


product.defvjp(lambda x, y: (x * y, y), lambda y, ct: ct * y)
KERNEL = np.ones((4, 2, 3, 3))
MISTAKES = {
    "an integer": (lambda: jax.grad(lambda x: x**2)(3), "write 3.0, or"),
    "one cotangent": (
        lambda: jax.grad(product)(1.0, 2.0),
        "backward rule '<lambda>' must return a tuple of 2 cotangents",
    ),
    "no pair": (
        lambda: jax.value_and_grad(lambda x: x, has_aux=True)(1.0),
        r"but returns one array; leave out has_aux",
    ),
    "channels": (
        lambda: jax.lax.conv_general_dilated(np.ones((1, 3, 5, 5)), KERNEL, (1, 1), "SAME"),
        "as many channels as the kernel",
    ),
    "values": (lambda: jax.jit(lambda x: x.at[:2].set(np.ones(3)))(np.ones(5)), "selected do not fit the values"),
    "arrays one by one": (lambda: jnp.concatenate(np.ones(3), np.ones(3)), r"as in concatenate\(\[x, y\]\)"),
    "at plus": (lambda: 2 * jnp.ones(3).at[0] + 1, r"write x\[index\] for its elements"),
    "at called": (lambda: jnp.ones(3).at(0), r"write x.at\[index\].set"),
    "a generator": (lambda: jax.random.uniform(np.random.default_rng(0)), "a key is an array made by harp.random.key"),
    "a number of steps": (lambda: jax.lax.scan(lambda c, x: (c, x), 0.0, 5), "write length=..., and None for xs"),
    "a policy": (lambda: jax.checkpoint(lambda x: x, policy="dots"), "of harp.checkpoint_policies, is a function"),
    "parameters": (lambda: odeint(lambda y, t: y, 1.0, np.arange(2.0), 3.0), r"with \(y, t, args\[0\]\)"),
    "devices": (lambda: jax.sharding, "a program runs on one device"),
    "sparse": (lambda: importlib.import_module("harp.jax.experimental.sparse"), "harp.ops.segment_sum"),
    "a name": (lambda: jax.image.ResizeMethood, "the nearest name there is 'ResizeMethod'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_messages(name):
    call, match = MISTAKES[name]
    with pytest.raises(Exception, match=match):
        call()


def test_a_keyword_of_jit():
    with pytest.raises(TypeError) as caught:
        jax.jit(lambda x: x, static_argnum=0)
    explain(caught.value)
    assert caught.value.__notes__ == ["harp.jit has no static_argnum; write static_argnums"]


def test_stages_own_no_arguments():
    x = np.ones(100)
    stages = jax.jit(lambda x: x * 2).lower(x)
    held = sys.getrefcount(x)
    function = stages.compile()
    assert (sys.getrefcount(x), held) == (2, 2) and function.compilations == 1
    assert float(function(x[:3]).sum()) == 6 and function.compilations == 1


def test_stages_of_signatures_take_no_memory():
    stages = jax.jit(lambda x: x * 2 + 1).lower(harp.f64[10**6, 10**6])
    assert "for n = x.shape[0] = 1000000" in str(stages)
    assert np.array_equal(stages.compile()(np.ones((2, 1))), [[3.0], [3.0]])


def test_questions_for_modules_that_are_not_there():
    assert importlib.util.find_spec("harp.jax.export") is None
    with pytest.raises(ImportError, match="for kernels of your own in C"):
        exec("from harp.jax.experimental import pallas")

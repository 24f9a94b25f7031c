"""Short programs in the style of JAX's tutorials, as text: each leaves what it computes in `result`.

They are written for JAX. Those that draw numbers, which differ between the libraries, check them themselves.
"""

from __future__ import annotations

SNIPPETS: dict[str, str] = {}

SNIPPETS["jit: a first function"] = """
import jax
import jax.numpy as jnp

def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

selu_jit = jax.jit(selu)
x = jnp.arange(6.0) - 3
result = selu_jit(x).block_until_ready()
"""

SNIPPETS["jit: static arguments"] = """
from functools import partial
import jax
import jax.numpy as jnp

@partial(jax.jit, static_argnames=["n", "kind"])
def smooth(x, n, kind="mean"):
    for _ in range(n):
        x = (x[1:] + x[:-1]) / 2 if kind == "mean" else jnp.maximum(x[1:], x[:-1])
    return x

result = smooth(jnp.array([1.0, 3.0, 2.0, 5.0, 4.0]), n=2), smooth(jnp.arange(4.0), n=1, kind="max")
"""

SNIPPETS["jit: a side effect runs once"] = """
import jax
import jax.numpy as jnp

traces = []

@jax.jit
def f(x):
    traces.append(x.shape)
    return jnp.dot(x, x)

result = f(jnp.ones(3)), f(2 * jnp.ones(3)), len(traces)
"""

SNIPPETS["jit: shapes and make_jaxpr"] = """
import jax
import jax.numpy as jnp

def f(x, y):
    return jnp.sin(x) @ y

assert "sin" in str(jax.make_jaxpr(f)(jnp.ones((2, 3)), jnp.ones(3)))
out = jax.eval_shape(f, jnp.ones((2, 3)), jnp.ones(3))
result = jnp.zeros(out.shape, out.dtype).sum()
"""

SNIPPETS["grad: logistic regression"] = """
import jax
import jax.numpy as jnp
from jax import grad, jit

def sigmoid(x):
    return 0.5 * (jnp.tanh(x / 2) + 1)

inputs = jnp.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
targets = jnp.array([True, True, False, True])

def loss(W, b):
    preds = sigmoid(jnp.dot(inputs, W) + b)
    label_probs = preds * targets + (1 - preds) * (1 - targets)
    return -jnp.sum(jnp.log(label_probs))

W, b = jnp.array([0.1, -0.2, 0.3]), 0.05
result = jit(grad(loss, argnums=(0, 1)))(W, b), jax.value_and_grad(loss)(W, b)
"""

SNIPPETS["grad: higher derivatives"] = """
import jax
f = lambda x: x**3 + 2 * x**2 - 3 * x + 1
dfdx = jax.grad(f)
d2fdx = jax.grad(dfdx)
d3fdx = jax.grad(d2fdx)
result = dfdx(1.0), d2fdx(1.0), d3fdx(1.0)
"""

SNIPPETS["grad: Jacobians and Hessians"] = """
import jax
import jax.numpy as jnp
from jax import jacfwd, jacrev, jit

def f(x):
    return jnp.stack([x[0] ** 2 * x[1], jnp.sin(x[2]), jnp.prod(x)])

def hessian(f):
    return jit(jacfwd(jacrev(f)))

x = jnp.array([1.0, 2.0, 3.0])
result = jacfwd(f)(x), jacrev(f)(x), hessian(lambda x: jnp.sum(f(x) ** 2))(x)
"""

SNIPPETS["grad: products with Jacobians"] = """
import jax
import jax.numpy as jnp

def f(W):
    return jnp.tanh(W @ jnp.array([1.0, -1.0]))

W = jnp.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
y, u = jax.jvp(f, (W,), (jnp.ones_like(W),))
y, vjp_fun = jax.vjp(f, W)
_, lin = jax.linearize(f, W)
result = u, vjp_fun(jnp.array([1.0, 0.0, 2.0])), lin(W)
"""

SNIPPETS["grad: has_aux and stop_gradient"] = """
import jax
import jax.numpy as jnp

def td_loss(theta, s_prev, r, s_next):
    v = lambda t, s: jnp.dot(t, s)
    target = r + jax.lax.stop_gradient(v(theta, s_next))
    return (target - v(theta, s_prev)) ** 2, target

theta, s0, s1 = jnp.array([0.1, -0.1, 0.0]), jnp.array([1.0, 2.0, -1.0]), jnp.array([2.0, 1.0, 0.0])
result = jax.grad(td_loss, has_aux=True)(theta, s0, 0.5, s1)
"""

SNIPPETS["grad: per-example gradients"] = """
import jax
import jax.numpy as jnp

def loss(params, x, y):
    w, b = params
    return (jnp.dot(x, w) + b - y) ** 2

per_example = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))
xs = jnp.arange(12.0).reshape(4, 3) / 10
result = per_example((jnp.array([1.0, -2.0, 0.5]), 0.1), xs, jnp.array([0.0, 1.0, 0.0, 1.0]))
"""

SNIPPETS["vmap: a convolution of vectors"] = """
import jax
import jax.numpy as jnp

x = jnp.arange(5)
w = jnp.array([2.0, 3.0, 4.0])

def convolve(x, w):
    output = []
    for i in range(1, len(x) - 1):
        output.append(jnp.dot(x[i - 1 : i + 2], w))
    return jnp.array(output)

xs, ws = jnp.stack([x, x]), jnp.stack([w, w])
along_columns = jax.vmap(convolve, in_axes=1, out_axes=1)
result = (
    jax.vmap(convolve)(xs, ws),
    jax.vmap(convolve, in_axes=[0, None])(xs, w),
    along_columns(jnp.transpose(xs), jnp.transpose(ws)),
)
"""

SNIPPETS["vmap: pairwise distances"] = """
import jax
import jax.numpy as jnp

def distance(a, b):
    return jnp.sqrt(jnp.sum((a - b) ** 2) + 1e-9)

pairwise = jax.vmap(jax.vmap(distance, (None, 0)), (0, None))
result = jax.jit(pairwise)(jnp.arange(6.0).reshape(3, 2), jnp.ones((4, 2)))
"""

SNIPPETS["vmap: collective operations"] = """
import jax
import jax.numpy as jnp

def normalise(x):
    return x / jax.lax.psum(x, axis_name="i")

result = jax.vmap(normalise, axis_name="i")(jnp.arange(4.0))
"""

SNIPPETS["random: keys"] = """
from jax import random
import jax.numpy as jnp

key = random.key(42)
key, subkey = random.split(key)
a = random.normal(subkey, shape=(1000,))
key, *subkeys = random.split(key, 4)
b = [random.uniform(k, (3,)) for k in subkeys]
assert abs(float(a.mean())) < 0.2 and abs(float(a.std()) - 1) < 0.2
assert not jnp.allclose(b[0], b[1]) and jnp.allclose(random.normal(subkey, (3,)), random.normal(subkey, (3,)))
result = a.shape, len(b)
"""

SNIPPETS["random: PRNGKey, distributions"] = """
import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)
keys = jax.random.split(key, num=5)
draws = [
    jax.random.bernoulli(keys[0], 0.3, (2000,)).mean(),
    jax.random.randint(keys[1], (2000,), 0, 10).mean() / 10,
    jax.random.exponential(keys[2], (2000,)).mean(),
    jax.random.categorical(keys[3], jnp.log(jnp.array([0.2, 0.8])), shape=(2000,)).mean(),
    jax.random.permutation(keys[4], 10).sum(),
]
for found, expected in zip(draws, [0.3, 0.45, 1.0, 0.8, 45]):
    assert abs(float(found) - expected) < 0.1
result = keys.shape
"""

SNIPPETS["random: Monte Carlo by vmap of keys"] = """
import jax
import jax.numpy as jnp

def inside(key):
    x, y = jax.random.uniform(key, (2,))
    return (x**2 + y**2 < 1).astype(jnp.float32)

estimate = 4 * jax.jit(jax.vmap(inside))(jax.random.split(jax.random.key(1), 20000)).mean()
assert abs(estimate - jnp.pi) < 0.1
result = estimate.ndim
"""

SNIPPETS["pytrees: maps and leaves"] = """
import jax
import jax.numpy as jnp

tree = {"a": [1.0, 2.0], "b": (jnp.arange(3.0), {"c": 5.0}), "d": None}
doubled = jax.tree.map(lambda x: 2 * x, tree)
leaves, treedef = jax.tree_util.tree_flatten(tree)
again = jax.tree_util.tree_unflatten(treedef, leaves)
paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
assert paths == ["['a'][0]", "['a'][1]", "['b'][0]", "['b'][1]['c']"]
result = doubled, jax.tree.map(lambda a, b: a + b, tree, again), jax.tree.reduce(lambda a, b: a + jnp.sum(b), tree, 0.0)
"""

SNIPPETS["pytrees: a class of one's own"] = """
import jax
import jax.numpy as jnp
from jax import tree_util

class RegisteredSpecial:
    def __init__(self, x, y, name):
        self.x, self.y, self.name = x, y, name

tree_util.register_pytree_node(
    RegisteredSpecial, lambda v: ((v.x, v.y), v.name), lambda name, children: RegisteredSpecial(*children, name)
)

@jax.jit
def area(v):
    return RegisteredSpecial(v.x * v.y, v.y + 1, v.name)

out = area(RegisteredSpecial(jnp.array([1.0, 2.0]), 3.0, "a"))
assert out.name == "a"
result = tree_util.tree_leaves(out)
"""

SNIPPETS["pytrees: a dataclass"] = """
from dataclasses import dataclass
from functools import partial
import jax
import jax.numpy as jnp

@partial(jax.tree_util.register_dataclass, data_fields=["w", "b"], meta_fields=["activation"])
@dataclass
class Layer:
    w: jax.Array
    b: jax.Array
    activation: str

def apply(layer, x):
    return getattr(jnp, layer.activation)(x @ layer.w + layer.b)

layer = Layer(jnp.ones((2, 3)), jnp.zeros(3), "tanh")
slope = jax.grad(lambda p: apply(p, jnp.array([0.1, 0.2])).sum())(layer)
result = slope.w, slope.b
"""

SNIPPETS["control flow: cond and switch"] = """
import jax
import jax.numpy as jnp
from jax import lax

@jax.jit
def f(x, k):
    y = lax.cond(x.sum() > 0, lambda v: v**2, lambda v: -v, x)
    return lax.switch(k, [lambda v: v, jnp.sin, lambda v: 3 * v], y)

x = jnp.array([1.0, -2.0, 3.0])
result = f(x, 0), f(-x, 1), f(x, 2), jax.grad(lambda v: f(v, 1).sum())(x)
"""

SNIPPETS["control flow: while_loop"] = """
import jax
import jax.numpy as jnp
from jax import lax

@jax.jit
def newton(a):
    def cond_fun(state):
        x, i = state
        return (jnp.abs(x * x - a) > 1e-5) & (i < 50)

    def body_fun(state):
        x, i = state
        return 0.5 * (x + a / x), i + 1

    return lax.while_loop(cond_fun, body_fun, (a, 0))

result = newton(2.0), newton(16.0)[0]
"""

SNIPPETS["control flow: fori_loop"] = """
import jax
import jax.numpy as jnp

@jax.jit
def fibonacci(n):
    return jax.lax.fori_loop(0, n, lambda i, ab: (ab[1], ab[0] + ab[1]), (0, 1))[0]

@jax.jit
def fill(x):
    return jax.lax.fori_loop(0, x.shape[0], lambda i, a: a.at[i].set(a[i] * i), x)

result = fibonacci(10), fill(jnp.ones(5))
"""

SNIPPETS["scan: cumulative sums and histories"] = """
import jax
import jax.numpy as jnp

def step(carry, x):
    total, count = carry
    total, count = total + x, count + 1
    return (total, count), total / count

(total, count), means = jax.lax.scan(step, (0.0, 0), jnp.array([1.0, 2.0, 6.0, 3.0]))
result = total, count, means, jax.lax.scan(lambda c, _: (c * 2, c), 1, None, length=5)[1]
"""

SNIPPETS["scan: a recurrent network and its gradient"] = """
import jax
import jax.numpy as jnp

def rnn(params, xs):
    def cell(h, x):
        h = jnp.tanh(params["w"] @ h + params["u"] @ x + params["b"])
        return h, h

    return jax.lax.scan(cell, jnp.zeros(params["b"].shape), xs)

params = {"w": 0.1 * jnp.ones((3, 3)), "u": 0.2 * jnp.ones((3, 2)), "b": jnp.zeros(3)}
xs = jnp.sin(jnp.arange(10.0)).reshape(5, 2)
result = jax.jit(jax.grad(lambda p: jnp.sum(rnn(p, xs)[1] ** 2)))(params)
"""

SNIPPETS["scan: an ODE by Runge and Kutta"] = """
import jax
import jax.numpy as jnp

def pendulum(state, t):
    theta, omega = state
    return jnp.array([omega, -jnp.sin(theta)])

def rk4(f, y0, ts):
    def step(y, t_and_dt):
        t, dt = t_and_dt
        k1 = f(y, t)
        k2 = f(y + dt / 2 * k1, t + dt / 2)
        k3 = f(y + dt / 2 * k2, t + dt / 2)
        k4 = f(y + dt * k3, t + dt)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return jax.lax.scan(step, y0, (ts[:-1], jnp.diff(ts)))[1]

result = jax.jit(lambda y0: rk4(pendulum, y0, jnp.linspace(0.0, 1.0, 21)))(jnp.array([0.5, 0.0]))
"""

SNIPPETS["checkify: checks of one's own and automatic ones"] = """
import jax
import jax.numpy as jnp
from jax.experimental import checkify

@jax.jit
def f(x, i):
    checkify.check(i >= 0, "index needs to be non-negative, got {i}", i=i)
    return jnp.sin(x[i])

checked = checkify.checkify(f, errors=checkify.user_checks | checkify.float_checks)
err, out = jax.jit(checked)(jnp.array([1.0, 2.0]), 1)
assert err.get() is None
err, _ = checkify.checkify(f)(jnp.array([1.0]), -1)
assert "index needs to be non-negative, got -1" in err.get()
err, _ = jax.jit(checkify.checkify(jnp.log, errors=checkify.float_checks))(-1.0)
assert "nan generated by primitive: log" in err.get()
result = out
"""

SNIPPETS["custom_vjp: clipped gradients"] = """
from functools import partial
import jax
import jax.numpy as jnp

@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def clip_gradient(lo, hi, x):
    return x

def clip_gradient_fwd(lo, hi, x):
    return x, None

def clip_gradient_bwd(lo, hi, _, g):
    return (jnp.clip(g, lo, hi),)

clip_gradient.defvjp(clip_gradient_fwd, clip_gradient_bwd)
result = jax.grad(lambda x: jnp.sum(clip_gradient(-0.5, 0.5, x) ** 2))(jnp.array([0.1, 3.0]))
"""

SNIPPETS["custom_jvp: log1pexp"] = """
import jax
import jax.numpy as jnp

@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))

@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * x_dot

result = jax.grad(log1pexp)(100.0), jax.jit(jax.vmap(jax.grad(log1pexp)))(jnp.arange(3.0)), jax.hessian(log1pexp)(1.0)
"""

SNIPPETS["nn: a network trained by gradient descent"] = """
import jax
import jax.numpy as jnp
from jax import random

def init(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        (random.normal(k, (m, n)) * jnp.sqrt(2 / m), jnp.zeros(n)) for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]

def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b

def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)

@jax.jit
def update(params, x, y, lr=0.05):
    grads = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads)

x = jnp.linspace(-1, 1, 64)[:, None]
y = jnp.sin(3 * x)
params = init(random.key(0), [1, 32, 32, 1])
for _ in range(500):
    params = update(params, x, y)
assert loss(params, x, y) < 0.05
result = len(params)
"""

SNIPPETS["nn: a classifier with momentum and accuracy"] = """
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
centres = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
labels = rng.integers(0, 3, 300)
points = (centres[labels] + 0.5 * rng.normal(size=(300, 2))).astype(np.float32)

def loss(params, x, y):
    logits = jax.nn.log_softmax(x @ params["w"] + params["b"])
    return -jnp.mean(jnp.sum(jax.nn.one_hot(y, 3) * logits, axis=-1))

@jax.jit
def step(params, velocity, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, grads)
    return jax.tree_util.tree_map(lambda p, v: p - 0.1 * v, params, velocity), velocity, value

@jax.jit
def accuracy(params, x, y):
    return jnp.mean(jnp.argmax(x @ params["w"] + params["b"], axis=1) == y)

params = {"w": jnp.zeros((2, 3)), "b": jnp.zeros(3)}
velocity = jax.tree_util.tree_map(jnp.zeros_like, params)
for epoch in range(20):
    for batch in np.array_split(np.arange(300), 7):
        params, velocity, value = step(params, velocity, points[batch], labels[batch])
assert accuracy(params, points, labels) > 0.95
result = params
"""

SNIPPETS["jit: compiled ahead of time"] = """
import jax
import jax.numpy as jnp

compiled = jax.jit(lambda x: jnp.sin(x) * 2).lower(jnp.ones(3)).compile()
result = compiled(jnp.arange(3.0))
"""

SNIPPETS["changed: float32 by default"] = """
import jax.numpy as jnp

x = jnp.linspace(0.0, 1.0, 3)
assert x.dtype == jnp.float32
result = x
"""

SNIPPETS["changed: a known index outside"] = """
import jax.numpy as jnp

x = jnp.arange(10.0)
result = x[11]
"""

SNIPPETS["changed: io_callback"] = """
import jax
import jax.numpy as jnp
from jax.experimental import io_callback

def f(x):
    return io_callback(lambda v: v * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

result = jax.jit(f)(jnp.ones(2))
"""

SNIPPETS["changed: several devices"] = """
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((1,), ("x",))
x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, PartitionSpec("x")))
result = jnp.sum(x)
"""

SNIPPETS["changed: jax.profiler"] = """
import tempfile
import jax
import jax.numpy as jnp

f = jax.jit(lambda x: jnp.sin(x))
with jax.profiler.trace(tempfile.mkdtemp()):
    result = f(jnp.ones(3))
"""

# Programs in which more than imports is changed for harp: what is replaced, by what, and why; docs/from-jax.md says it.
SNIPPETS["jit: compiled for shapes, without static arguments"] = """
import jax
import jax.numpy as jnp

lowered = jax.jit(lambda n, x: x**n, static_argnums=0).lower(3, jax.ShapeDtypeStruct((2,), jnp.float32))
result = [lowered.compile()(jnp.array([1.0, 2.0], jnp.float32)), len(lowered.as_text()) > 0]
"""

SNIPPETS["images: resize, scale and translate"] = """
import jax
import jax.numpy as jnp

image = jnp.arange(48.0).reshape(6, 8) ** 1.5
scale, shift = jnp.array([1.25, 0.5]), jnp.array([0.25, 1.0])
move = lambda s, t: jax.image.scale_and_translate(image, (6, 5), (0, 1), s, t, "cubic")
smaller = jax.image.resize(image, (3, 4), jax.image.ResizeMethod.LANCZOS3)
result = [move(scale, shift), smaller, *jax.grad(lambda s, t: (move(s, t) ** 2).mean(), (0, 1))(scale, shift)]
"""

SNIPPETS["callbacks: NumPy in a batch"] = """
import jax
import jax.numpy as jnp
import numpy as np

def hypot(x, y):
    shape = jax.ShapeDtypeStruct(jnp.broadcast_shapes(x.shape, y.shape), x.dtype)
    return jax.pure_callback(np.hypot, shape, x, y, vmap_method="expand_dims")

x, y = jnp.arange(3.0), jnp.array(4.0)
result = [jax.jit(jax.vmap(hypot, (0, None)))(x, y), hypot(x, y)]
"""

CHANGES: dict[str, dict[str, str]] = {
    "changed: float32 by default": {
        "from harp.jax import numpy as jnp": "import harp\nfrom harp.jax import numpy as jnp",
        "x = jnp.linspace(0.0, 1.0, 3)": 'with harp.default_dtype("float32"):\n    x = jnp.linspace(0.0, 1.0, 3)',
    },
    "changed: a known index outside": {"x[11]": 'x.at[11].get(mode="clip")'},
    "changed: io_callback": {
        "from harp.jax.experimental import io_callback": "",
        "io_callback(": "jax.pure_callback(",
    },
    "changed: several devices": {
        "from harp.jax.sharding import NamedSharding, PartitionSpec": "",
        'mesh = jax.make_mesh((1,), ("x",))': "",
        'NamedSharding(mesh, PartitionSpec("x"))': "jax.devices()[0]",
    },
    "changed: jax.profiler": {
        "with jax.profiler.trace(tempfile.mkdtemp()):": "profile = f.profile(jnp.ones(3))\nif profile.kernels:",
    },
}

"""The API reference: Markdown made of the signatures and docstrings of all public names.

Names are looked up in the imported package, so what is re-exported, or made of a table, is found under the name that
users write. `pages()` is all of it, by file: MyST's Markdown, with directives of Sphinx, which keeps an index of names.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

import harp
from harp import errors
from harp.transforms.jit.stages import Stages

# Each page: the namespace, and what it is called.
NAMESPACES = {
    "harp": "harp.md",
    "harp.numpy": "numpy.md",
    "harp.numpy.linalg": "linalg.md",
    "harp.numpy.fft": "fft.md",
    "harp.scipy.interpolate": "interpolate.md",
    "harp.numpy.lib.stride_tricks": "stride_tricks.md",
    "harp.scipy.cluster.vq": "vq.md",
    "harp.scipy.fft": "cosine_transforms.md",
    "harp.scipy.integrate": "integrate.md",
    "harp.scipy.linalg": "scipy_linalg.md",
    "harp.scipy.ndimage": "ndimage.md",
    "harp.scipy.optimize": "optimize.md",
    "harp.scipy.signal": "signal.md",
    "harp.scipy.sparse.linalg": "sparse_linalg.md",
    "harp.nn": "nn.md",
    "harp.nn.initializers": "initializers.md",
    "harp.ops": "ops.md",
    "harp.optim": "optim.md",
    "harp.scipy.special": "special.md",
    "harp.scipy.stats": "stats.md",
    "harp.lax": "lax.md",
    "harp.random": "random.md",
    "harp.tree": "tree.md",
    "harp.debug": "debug.md",
    "harp.checkpoint_policies": "checkpoint_policies.md",
    "harp.errors": "errors.md",
    "harp.extend": "extend.md",
}
# Modules of names that stand on other pages; docs/from-jax.md has those of JAX.
WITHOUT_PAGES = {
    "harp.numpy.special",
    "harp.flatten_util",
    "harp.jax",
    "harp.nn.image",
    "harp.numpy.lib",
    "harp.scipy",
    "harp.test_util",
    "harp.tree_util",
}
# Sections of the long pages. Of `harp` by names; elsewhere by the module in which a function is defined.
HARP = {
    "Compile": "jit JitFunction Stages CompileOptions export",
    "Differentiate": "grad value_and_grad vjp jvp linearize jacfwd jacrev value_and_jacfwd value_and_jacrev "
    "hessian hvp stop_gradient custom_jvp custom_vjp checkpoint checkpoint_name checkpoint_policies",
    "Batches": "vmap map",
    "Loops and branches": "scan fori_loop while_loop cond switch associative_scan",
    "Arrays and sizes": "Array Size realize",
    "Dtypes and signatures": "ArraySignature DType bf16 bool_ c64 c128 f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 "
    "f8_e3m4 f8_e4m3 f8_e4m3b11fnuz f8_e4m3fn f8_e4m3fnuz f8_e5m2 f8_e5m2fnuz i4 u4 eval_shape",
    "Graphs": "trace Graph GraphSignature",
    "Devices, threads, defaults and counters": "devices default_device device_put default_dtype set_threads stats "
    "wait_for_compilers",
    "Code of one's own": "pure_callback kernel Kernel",
    "Namespaces": "numpy scipy nn optim lax random ops tree debug errors extend jax tree_util test_util flatten_util",
}
TOPICS = {
    "creation": "Make arrays",
    "inspection": "Make arrays",
    "arithmetic": "Arithmetic, comparison, logic",
    "elementwise": "Arithmetic, comparison, logic",
    "mathematical": "Mathematical functions",
    "gamma_functions": "Mathematical functions",
    "errors": "Mathematical functions",
    "formulas": "Mathematical functions",
    "activation": "Activation functions",
    "floats": "Parts of numbers",
    "closeness": "Parts of numbers",
    "complexes": "Complex numbers",
    "reductions": "Reductions",
    "nans": "Reductions without NaN",
    "folds": "Reductions",
    "cumulative": "Running sums, products, extrema",
    "products": "Products and linear algebra",
    "einsum": "Products and linear algebra",
    "matrices": "Products and linear algebra",
    "norms": "Products and linear algebra",
    "factors": "Systems of linear equations",
    "triangular": "Systems of linear equations",
    "banded": "Systems of linear equations",
    "systems": "Systems of linear equations",
    "powers": "Systems of linear equations",
    "manipulation": "Shapes and axes",
    "shapes": "Shapes and axes",
    "joining": "Join, split, repeat",
    "stacking": "Join, split, repeat",
    "padding": "Join, split, repeat",
    "indexing": "Indices",
    "slicing": "Slices",
    "gathering": "Gathers and scatters",
    "bits": "Bits of numbers",
    "choosing": "Indices and choices",
    "editing": "Indices and choices",
    "index_tricks": "Indices and choices",
    "sorting": "Sort and search",
    "sets": "Sets and searches by data",
    "quantiles": "Statistics",
    "counting": "Statistics",
    "ranks": "Statistics",
    "numerical": "Numerical methods",
    "polynomials": "Numerical methods",
    "windows": "Numerical methods",
    "convolution": "Convolutions and windows",
    "pooling": "Convolutions and windows",
    "layers": "Convolutions and pools",
    "attention": "Attention, embeddings, recurrent cells",
    "embeddings": "Attention, embeddings, recurrent cells",
    "recurrent": "Attention, embeddings, recurrent cells",
    "normalization": "Normalisations and dropout",
    "losses": "Losses",
    "resizing": "Convolutions and pools",
    "collectives": "All examples of a batch",
    "vectorising": "Functions of functions",
    "dtypes": "Dtypes",
    "types": "Dtypes",
    "interchange": "Make arrays",
    "numpy": "Print and save",
    "array": "Make arrays",
    "scan": "Loops and branches",
    "conditional": "Loops and branches",
    "mapping": "Loops and branches",
    "associative": "Loops and branches",
    "implicit": "Solutions of equations",
    "grad": "Loops and branches",
}
OTHERS = "Constants and others"
DECLARES = 'The dtype `{0}`. `harp.{1}["batch", 784]` declares an array of it: see `harp.ArraySignature`.'
# Names that are mostly something else in a docstring.
_WORDS = frozenset({"e", "f", "map", "size", "shape", "x"})


def names_of(module: ModuleType) -> list[str]:
    """The public names: `__all__`, or where there is none, what the module itself defines."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
        ]
    return sorted({*listed} - {"annotations"}, key=lambda name: (name.lower(), name))


def module_of(namespace: str) -> ModuleType:
    """The namespace as a module; some are attributes of `harp` only."""
    value: object = harp
    for part in namespace.split(".")[1:]:
        value = getattr(value, part)
    assert isinstance(value, ModuleType)
    return value


def public() -> dict[str, object]:
    """Every public name, with its namespace before it, and what it is."""
    found: dict[str, object] = {}
    for namespace in NAMESPACES:
        module = module_of(namespace)
        found |= {f"{namespace}.{name}": getattr(module, name) for name in names_of(module)}
    return found | {"harp.Stages": Stages}


PUBLIC = public()
PAGE_OF = {name: NAMESPACES[name.rpartition(".")[0]] for name in PUBLIC}


# Links ----------------------------------------------------------------------------------------------------------------

_PREFIXES = {"hnp": "harp.numpy", "jnp": "harp.numpy", "lax": "harp.lax"}
_CODE = re.compile(
    r"(?P<link>\[[^\]]*\]\([^)]*\))"  # a link that is there already
    r"|(?<![`\w}])`(?P<name>(?:\w+\.)*\w+)(?P<call>\([^`<>]*\))?`(?!`)"
)
_ERROR = re.compile(r"(?<![`\w./])(" + "|".join(names_of(errors)) + r")(?![`\w])")


def linked(text: str, namespace: str = "", but: frozenset[str] = frozenset()) -> str:
    """The text with its inline code linked, where that is a public name; within a namespace its own names are short."""

    def link(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return match[0]
        first, _, rest = name.partition(".")
        full = f"{_PREFIXES[first]}.{rest}" if rest and first in _PREFIXES else name
        if "." not in name and namespace and name not in but:
            full = f"{namespace}.{name}"
        if (full not in PUBLIC and full not in NAMESPACES) or "." not in full or full in WITHOUT_PAGES:
            return match[0]
        return f"{{py:obj}}`{name}{match['call'] or ''} <{full}>`"

    return _CODE.sub(link, text)


def _with_errors(text: str) -> str:
    return _ERROR.sub(lambda match: f"{{py:obj}}`{match[1]} <harp.errors.{match[1]}>`", text)


# Signatures -----------------------------------------------------------------------------------------------------------


def signature(name: str, value: Callable[..., object]) -> str:
    """`name(a, b=0) -> Array`; annotations that say nothing (`object`, type variables) are left out."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    result = "" if inspect.isclass(value) else _annotation(found.return_annotation)
    return f"{name}({', '.join(_parameters(found))}){' -> ' if result else ''}{result}"


def _parameters(found: inspect.Signature) -> list[str]:
    parts: list[str] = []
    parameters = [p for p in found.parameters.values() if p.name != "self"]
    for k, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and (not k or parameters[k - 1].kind not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)):
            parts.append("*")
        note = _annotation(p.annotation)
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        equals = "" if p.default is p.empty else f"{' = ' if note else '='}{_default(p.default)}"
        parts.append(f"{star}{p.name}{': ' + note if note else ''}{equals}")
        if p.kind is p.POSITIONAL_ONLY and (k + 1 == len(parameters) or parameters[k + 1].kind is not p.kind):
            parts.append("/")
    return parts


def _default(value: object) -> str:
    if inspect.isclass(value) or inspect.isfunction(value):
        return value.__name__
    return re.sub(r" at 0x\w+", "", repr(value))


def _annotation(annotation: object) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    before = ""
    while before != text:  # from the inside out: the arguments of generic types
        before, text = text, re.sub(r"\b(Callable|Transformed|JitFunction)\[[^\[\]]*\]", r"\1", text)
        text = re.sub(r"\b(\w+)\[(object|Any|(?<=Callable\[)\[[^\[\]]*\], [^\[\]]*)\]", r"\1", text)
    text = text.replace("Transformed", "Callable")
    return "" if re.search(r"\b(object|Any|_?[A-Z])\b", text) else text


# Docstrings -----------------------------------------------------------------------------------------------------------


def markdown(doc: str, namespace: str, but: frozenset[str]) -> str:
    """A docstring as Markdown: examples become blocks of code, names and errors links."""
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(doc)):
        at = re.search(r"^>>> ", block, re.MULTILINE)
        prose = block if at is None else block[: at.start()]
        if prose.strip():
            parts.append(_with_errors(linked(prose.strip(), namespace, but)))
        if at is not None:
            example = block[at.start() :].replace("<BLANKLINE>", "")
            parts.append(f"```pycon\n{example}\n```")
    return "\n\n".join(parts)


def summary(value: object, name: str = "") -> str:
    """The first sentence of a docstring, on one line."""
    if isinstance(value, ModuleType):
        text = value.__doc__ or ""
    elif isinstance(value, harp.DType):
        return DECLARES.format(value.numpy_name, name)
    elif _is_numpys(value):
        return f"NumPy's `{getattr(value, '__name__', value)}`."
    elif callable(value) or type(value).__module__.startswith("harp."):
        text = inspect.getdoc(value) or ""
    else:
        return (
            f"The number `{value!r}`." if value is not None else "`None`, for a new axis in an index: `x[:, newaxis]`."
        )
    first = inspect.cleandoc(text).split("\n\n")[0].replace("\n", " ")
    sentence = re.match(r".*?[.:](?=\s|$)", first)
    short = (sentence[0] if sentence else first).rstrip(":")
    return (short if short.endswith(".") else f"{short}.").replace("|", "\\|")


def _is_numpys(value: object) -> bool:
    is_class = inspect.isclass(value) and issubclass(value, (np.generic, np.dtype, Warning))
    return is_class or (callable(value) and (getattr(value, "__module__", "") or "").startswith("numpy"))


# Pages ----------------------------------------------------------------------------------------------------------------


def entry(full: str, value: object) -> str:
    """A directive of Sphinx for one name: its signature, and its docstring."""
    namespace, _, name = full.rpartition(".")
    if inspect.isclass(value) and issubclass(value, Exception) and namespace == "harp.errors":
        bases = " and ".join(f"`{base.__name__}`" for base in value.__bases__)
        advice = f"What to do: [Errors](../errors.md#{name.lower()})."
        text = f"{_text(full, value)}\n\nA {bases}. {advice if value.__subclasses__() == [] else ''}"
        return directive("exception", name, text)
    if not callable(value) or isinstance(value, harp.DType) or _is_numpys(value):
        said = summary(value, name)
        own = type(value).__module__.startswith("harp.") and not isinstance(value, harp.DType)
        return directive("data", name, _text(full, value) if own else linked(said))
    others = [other for other, same in PUBLIC.items() if same is value and other != full]
    same = f"The same as {', '.join(linked(f'`{other}`') for other in others)}.\n\n" if others else ""
    text = same + _text(full, value)
    if others and inspect.isclass(value) and namespace != "harp":
        return directive("class", name, same)
    if not inspect.isclass(value):
        return directive("function", signature(name, value), text)
    shown = signature(name, value) if value is harp.CompileOptions else name  # others are made by functions
    return directive("class", shown, "\n\n".join([text, *_members(value)]))


def directive(kind: str, argument: str, text: str) -> str:
    """A fence that is longer than all those inside of it."""
    longest = max((len(fence) for fence in re.findall(r"^`{3,}", text, re.MULTILINE)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{{py:{kind}}} {argument}\n\n{text}\n{fence}"


def _text(full: str, value: object) -> str:
    namespace, _, name = full.rpartition(".")
    try:
        own = frozenset(inspect.signature(value).parameters) if callable(value) else frozenset()
    except (TypeError, ValueError):
        own = frozenset()
    return markdown(inspect.getdoc(value) or "", namespace, own | {name} | _WORDS)


def _members(cls: type) -> Iterator[str]:
    """Methods and properties that have a docstring."""
    for name in sorted(n for n in dir(cls) if not n.startswith("_")):
        member = inspect.getattr_static(cls, name)
        member = getattr(member, "__func__", member)
        if not inspect.getdoc(member):
            continue
        shown, kind = name, "attribute"
        if inspect.isfunction(member):
            shown, kind = signature(name, member), "method"
        doc = markdown(inspect.getdoc(member) or "", "", frozenset())
        yield directive(kind, shown, doc)


def sections(namespace: str) -> dict[str, list[str]]:
    """The names of a namespace, by the titles of their sections."""
    names = names_of(module_of(namespace))
    if namespace == "harp":
        return {title: listed.split() for title, listed in HARP.items()}
    if namespace not in ("harp.numpy", "harp.lax"):
        return {"All": names}
    found: dict[str, list[str]] = {title: [] for title in (*TOPICS.values(), OTHERS)}
    for name in names:
        value = PUBLIC[f"{namespace}.{name}"]
        home = (getattr(value, "__module__", None) or type(value).__module__).rpartition(".")[2]
        is_class = _is_numpys(value) and inspect.isclass(value)
        title = "Dtypes" if is_class else OTHERS if isinstance(value, ModuleType) else TOPICS.get(home, OTHERS)
        found[title].append(name)
    return {title: listed for title, listed in found.items() if listed}


def page(namespace: str) -> str:
    """All names of a namespace: in each section a table of what they do, then each in full."""
    module = module_of(namespace)
    doc = markdown(module.__doc__ or "", namespace, _WORDS)
    parts = [f"# {namespace}", f"```{{py:module}} {namespace}\n```", doc]
    for title, names in sections(namespace).items():
        rows = [_row(f"{namespace}.{name}") for name in names]
        parts += [f"## {title}", "\n".join(["| name | what it does |", "|---|---|", *rows])]
        listed = [f"{namespace}.{name}" for name in names]
        parts += [entry(full, PUBLIC[full]) for full in listed if not isinstance(PUBLIC[full], ModuleType)]
    return "\n\n".join(parts) + "\n"


def _row(full: str) -> str:
    name, value = full.rpartition(".")[2], PUBLIC[full]
    shown = f"`{full}`" if full in WITHOUT_PAGES else f"{{py:obj}}`{name} <{full}>`"
    return f"| {shown} | {summary(value, name)} |"


def pages() -> dict[str, str]:
    """Markdown by the name of its file."""
    return {file: page(namespace) for namespace, file in NAMESPACES.items()}

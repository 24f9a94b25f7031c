"""What keeps harp readable: small files and functions, one-way imports, precise types, text about harp itself."""

import ast
import importlib
import inspect
import logging
import pathlib
import re
import sys
import tomllib
import types
from collections.abc import Iterator

import pytest

import harp
import harp.lax
import harp.numpy
import harp.random

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "harp").rglob("*.py"))
C_FILES = sorted(p for p in (ROOT / "harp").rglob("*") if p.suffix in (".c", ".h"))
FOLDERS = ("benchmarks", "docs", "examples")
TEXTS = [
    *SOURCES,
    *C_FILES,
    *(p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".py", ".md")),
    *(ROOT / file for file in ("CHANGELOG.md", "Makefile", "README.md", "pyproject.toml")),
]

MAX_LINES = 600  # a file is an idea, mostly of 100 to 400 lines
MAX_FUNCTION_LINES = 60
MAX_FILES = 15  # in a folder, mostly of 4 to 12

# Text describes the program as it is: not its making, its makers, or what is still to do.
FOREIGN = re.compile(
    r"\b(?:agents?|assistants?|sessions?|workplace|TODO|FIXME|XXX)\b|(?<!\w)/(?:work|home|root)/", re.IGNORECASE
)

NAMESPACES = ("harp", "harp.lax", "harp.numpy", "harp.numpy.linalg")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
METHODS = (types.FunctionType, property, classmethod, staticmethod)
IMPORTS = (ast.Import, ast.ImportFrom)


# Functions that call themselves, and what bounds how deep: never the number of operations of a program.
RECURSIVE = {
    "nothing: they name themselves, as what makes a function that is pickled": {
        "transforms/autodiff/checkpoint": "checkpoint",
        "transforms/autodiff/grad": "grad value_and_grad",
        "transforms/batching/vmap": "vmap",
        "transforms/jacobians": "jacfwd jacrev value_and_jacfwd value_and_jacrev",
    },
    "the nesting of statements, at most MOST_NESTED variables and the loops of the user": {
        "backends/c/emit/function": "hoisted",
        "backends/c/emit/render": "_stores",
        "lower/device/grid": "_Mapping.statement through_branches",
        "lower/device/groups": "suits",
        "backends/c/emit/work": "Work._amount",
        "lower/device/long_sums": "_flat _in_order",
        "lower/device/rows": "_statement",
        "lower/device/running_sums": "_results.statement _without",
        "lower/device/share": "_Sharing.statement",
        "lower/kernels/bounds_checks": "_Checked.statement",
        "lower/kernels/copies": "_with_values",
        "lower/kernels/donate": "_reads_in_time _reading_first _without_nothing _does_nothing",
        "lower/kernels/fuse": "form_of _then _kept_inside.statement _computed_in _inlined",
        "lower/kernels/iterations": "_Relabel.statement",
        "lower/kernels/needed_elements": "_within _implies",
        "lower/kernels/outline": "_over_parts.statement Form._statement Form._renamed _loading.statement",
        "lower/kernels/local_functions": "local_functions.statement",
        "lower/library": "_selected",
        "lower/loopir/conditions": "given without_dead_stores _without",
        "lower/loopir/dependence": "_accesses",
        "lower/loopir/effects": "_free effects",
        "lower/loopir/nests": "Renaming.statement with_loops is_plain _privatise",
        "lower/loopir/products": "fused_sums _stores _without _statement",
        "lower/reductions/accumulators": "in_blocks",
        "lower/reductions/short_rows": "_written_out _depth _written _unrolled",
        "lower/reductions/chunks": "_outermost.statement _once _replaced _inside",
        "lower/reductions/columns": "_over_rows",
        "lower/reductions/row_dots": "_variables",
        "lower/reductions/scan": "_behind in_parts",
        "lower/report/counts": "_valued.value",
        "lower/report/executions": "_narrow _sum _bernoulli",
        "lower/report/report": "_allocated_bytes _range",
        "lower/report/operations": "_statements",
        "lower/rewrite/digits": "over_digits",
        "lower/rewrite/hoisting": "_Names.statement",
        "lower/rewrite/index_set_splitting": "_settled _split _branched _decided _pieces _boxes _nested "
        "_changes_nothing",
        "lower/rewrite/coalesce": "interchanged",
        "lower/rewrite/loop_fission": "_inlined.visit",
        "lower/rewrite/loop_primitives": "stage.statement shrink.statement everywhere _in_plain",
        "lower/rewrite/parallel": "_parallel _innermost _with_innermost",
        "lower/rewrite/staged_halves": "_over_copies",
        "lower/verify/interpreter": "_work",
        "lower/verify/lanes": "lane_errors",
        "lower/verify/verify": "_all_indices _bound _Checker.statement",
    },
    "the nesting of the user's loops and branches, or the views between operations, or a rank": {
        "lower/graph/factors_before_loops": "factors_before_loops",
        "lower/graph/window_factors": "window_factors",
        "lower/rewrite/vectorise": "_unswitched",
        "lower/graph/dead_results": "kept_elements",
        "lower/graph/legalise": "_real_or_imag verify_legalised",
        "lower/graph/simplify": "_reads_turned",
        "lower/graph/sums_behind_loops": "sums_behind_loops _Behind._summed _Behind._of_all_steps",
        "lower/report/page/links": "_inner_sites",
        "numpy/creation": "_from_list _holds_array",
        "numpy/cumulative": "_cumulate",
        "numpy/elementwise": "_is_infinite _is_finite",
        "numpy/joining": "roll",
        "numpy/linalg/einsum": "_multiplied",
        "numpy/linalg/order": "numbers",
        "numpy/numerical": "_on_segment",
        "numpy/sorting": "search",
        "numpy/stacking": "_depth _rank _block",
        "numpy/types": "isdtype",
        "trace/array/numpy_functions": "_kept",
        "trace/graph/body": "may_not_end",
        "trace/graph/host_calls": "has_node",
        "trace/graph/row_functions": "_order",
        "trace/graph/view": "view _sizes",
        "trace/sizes/proofs": "claims",
        "trace/sizes/scope": "Scope.equate Scope.is_solvable",
        "trace/sizes/signature": "_expressions",
        "transforms/autodiff/checkpoint": "_all_cotangents",
        "transforms/autodiff/custom": "_with_none",
        "transforms/autodiff/loops/bounds": "with_bounds range_of _range_of_expr",
        "transforms/batching/iteration_rules": "_with_loops_of_some",
        "transforms/jit/calls": "assembly.build on_host.fetched",
        "transforms/jit/export": "_calls",
    },
    "the order of a derivative": {
        "numpy/complexes": "_with_rule",
        "transforms/implicit": "custom_linear_solve",
    },
    "the nesting of the user's containers, an error if too deep": {
        "trace/trees": "_flatten _flatten_with_path flatten_up_to _unflatten count_leaves alike spread labels",
        "tree": "register",
    },
    "a proof's depth, a fixed number of kinds, or one retry": {
        "backends/c/emit/bundle": "headers.add _own _template",
        "backends/c/emit/work": "bound_of _slope",
        "backends/c_family/scalar": "conversion literal",
        "backends/c_family/values": "_is_rounded",
        "backends/opencl/build": "_expanded",
        "foreign/signature": "_value",
        "random/normal": "normal",
        "trace/array/numpy_functions": "is_traced",
        "trace/array/questions": "_resolved",
        "trace/array/updates": "put",
        "trace/interning": "identity",
        "trace/index/division": "_floordiv _proper relu",
        "trace/index/polynomial": "value_atoms atoms_in",
        "trace/index/solving": "certain",
        "trace/scalar/dtypes": "_join",
    },
}


def walk(*kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Every node of these kinds in harp, with the place where it stands."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
            if isinstance(node, kinds):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return ["harp" if node.level else str(node.module)]


def report(problems: list[str]) -> None:
    assert not problems, "\n" + "\n".join(problems)


def test_files_are_short():
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in (*SOURCES, *C_FILES)}
    report([f"{p.relative_to(ROOT)}: {n} lines" for p, n in lengths.items() if n >= MAX_LINES])


def test_functions_are_short():
    found = ((where, node.name, node.end_lineno - node.lineno + 1) for where, node in walk(*FUNCTIONS))
    report([f"{where}: {name} has {n} lines" for where, name, n in found if n > MAX_FUNCTION_LINES])


@pytest.mark.slow
def test_c_is_in_files_of_its_own():
    """Where compilers, formatters and sanitizers see it: strings have a few lines at most."""
    assert C_FILES
    found = [(where, node.value) for where, node in walk(ast.Constant) if isinstance(node.value, str)]
    report([where for where, text in found if sum(line.endswith((";", "{", "}")) for line in text.split("\n")) > 10])


def test_every_c_file_says_what_it_does():
    report([str(path.relative_to(ROOT)) for path in C_FILES if not path.read_text("utf-8").startswith("/* ")])


def test_every_module_has_a_docstring():
    modules = [(path, path.read_text("utf-8")) for path in SOURCES]
    report([str(p.relative_to(ROOT)) for p, text in modules if ast.get_docstring(ast.parse(text)) is None])


def test_harp_is_imported_at_the_top_of_a_file_only():
    """The compiler, half of harp, is the one exception: it is loaded with the first program."""
    lazy = {f"harp.transforms.jit.{name}" for name in ("lowering", "programs", "profiling", "kernels", "stages")}
    problems = []
    for where, function in walk(*FUNCTIONS):
        inner = (node for node in ast.walk(function) if isinstance(node, IMPORTS))
        if any(m.split(".")[0] == "harp" and m not in lazy for node in inner for m in imported(node)):
            problems.append(f"{where}: {function.name}")
    report(problems)


@pytest.mark.slow
def test_harp_takes_no_names_out_of_its_own_namespaces():
    """They are found under a lock, and whoever imports a module holds its lock already: two threads would wait."""
    tables = {name: importlib.import_module(name)._NAMES for name in NAMESPACES}
    problems = []
    for where, node in walk(ast.ImportFrom):
        names = tables[node.module].homes if node.module in tables else {}
        problems += [f"{where}: {alias.name}" for alias in node.names if alias.name in names]
    report(problems)


def test_imports_of_other_packages_are_declared():
    """dataclasses counts as another one, for what it costs an import: attrs makes such classes here."""
    packages = {"_cffi_backend": "cffi"}
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    declared = [
        *project["dependencies"],
        *(name for extra in ("bfloat16", "opencl") for name in project["optional-dependencies"][extra]),
    ]
    known = {re.match(r"[\w-]+", text).group() for text in declared} | (sys.stdlib_module_names - {"dataclasses"})
    found = ((where, name.split(".")[0]) for where, node in walk(*IMPORTS) for name in imported(node))
    report([f"{where}: {name}" for where, name in found if name != "harp" and packages.get(name, name) not in known])


def test_every_folder_says_which_file_to_read_first():
    """And has few files: somebody who opens it sees what they are about."""
    problems = []
    for layer in ("trace", "transforms", "lower", "backends"):
        for path in sorted((ROOT / "harp" / layer).rglob("__init__.py")):
            text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
            first = re.findall(r"`([\w/]+\.py)`", text.rpartition("Read ")[2])
            if not first or not all((path.parent / name).exists() for name in first):
                problems.append(f"{path.relative_to(ROOT)}: names {first}")
            count = len(list(path.parent.glob("*.py"))) - 1
            if count > MAX_FILES:
                problems.append(f"{path.parent.relative_to(ROOT)}: {count} files")
    report(problems)


def recursive(node: ast.AST, prefix: str = "", method: bool = False) -> Iterator[str]:
    """The functions below a node that mention themselves, by their own name or as `self.name`."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield from recursive(child, prefix, method)
            continue
        if isinstance(child, FUNCTIONS):
            inside = list(ast.walk(child))
            own = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            own |= {n.arg for n in inside if isinstance(n, ast.arg)}
            if method:
                mentioned = {n.attr for n in inside if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self"}
            else:
                mentioned = {n.id for n in inside if isinstance(n, ast.Name)} - own
            if child.name in mentioned:
                yield prefix + child.name
        yield from recursive(child, f"{prefix}{child.name}.", isinstance(child, ast.ClassDef))


@pytest.mark.slow
def test_functions_that_call_themselves_say_what_bounds_their_depth():
    known = {(p, name) for files in RECURSIVE.values() for p, names in files.items() for name in names.split()}
    found = {
        (str(path.relative_to(ROOT / "harp").with_suffix("")), name)
        for path in SOURCES
        for name in recursive(ast.parse(path.read_text("utf-8")))
    }
    report([f"{path}: {name} calls itself" for path, name in sorted(found - known)])
    report([f"{path}: {name} does not call itself" for path, name in sorted(known - found)])


def test_no_star_imports():
    report([where for where, node in walk(ast.ImportFrom) if node.names[0].name == "*"])


def test_handlers_name_what_they_catch():
    def broad(kind: ast.expr | None) -> bool:
        kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        return any(k is None or ast.unparse(k) in ("Exception", "BaseException") for k in kinds)

    # a handler that ends in `raise` hides nothing: it cleans up, or says which object of the user's has raised
    def raises(node: ast.ExceptHandler) -> bool:
        return isinstance(node.body[-1], ast.Raise)

    # stops all compilers first, whatever comes meanwhile, and raises it then
    later = "harp/backends/toolchain/process.py"
    found = [where for where, node in walk(ast.ExceptHandler) if broad(node.type) and not raises(node)]
    report([where for where in found if not where.startswith(later)])


@pytest.mark.slow
def test_fields_have_precise_types():
    """`Callable[..., Any]`, a function of the user, is the one exception."""
    problems = []
    for where, node in walk(ast.ClassDef):
        for field in node.body:
            if isinstance(field, ast.AnnAssign):
                kind = ast.unparse(field.annotation)
                if re.search(r"\bAny\b", kind.replace("Callable[..., Any]", "")):
                    problems.append(f"{where}: {node.name}.{ast.unparse(field.target)}: {kind}")
    report(problems)


def test_all_that_is_public_is_documented():
    problems = []
    for module in (harp, harp.lax, harp.numpy, harp.random):
        for name in getattr(module, "__all__", [n for n in dir(module) if not n.startswith("_")]):
            value = getattr(module, name)
            if value is not None and not inspect.getdoc(value):
                problems.append(f"{module.__name__}.{name}")
            if inspect.isclass(value) and value.__module__.startswith("harp."):
                members = [(n, m) for n, m in vars(value).items() if not n.startswith("_") and isinstance(m, METHODS)]
                problems += [f"{name}.{n}" for n, member in members if not inspect.getdoc(member)]
    report(problems)


def test_text_is_about_harp():
    problems = []
    for path in TEXTS:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if match := FOREIGN.search(line):
                problems.append(f"{path.relative_to(ROOT)}:{number}: {match.group()!r}")
    report(problems)


def test_imports_go_one_way(capsys, monkeypatch):
    cli = pytest.importorskip("importlinter.cli")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(logging.getLogger("harp"), "disabled", False)  # the command silences all loggers
    status = cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert status == cli.EXIT_STATUS_SUCCESS, capsys.readouterr().out

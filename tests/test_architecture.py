"""What keeps harp readable: small files and functions, one-way imports, precise types, text about harp itself."""

import ast
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

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
METHODS = (types.FunctionType, property, classmethod, staticmethod)
IMPORTS = (ast.Import, ast.ImportFrom)


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
    lazy = {f"harp.transforms.jit.{name}" for name in ("lowering", "programs", "profiling", "kernels")}
    problems = []
    for where, function in walk(*FUNCTIONS):
        inner = (node for node in ast.walk(function) if isinstance(node, IMPORTS))
        if any(m.split(".")[0] == "harp" and m not in lazy for node in inner for m in imported(node)):
            problems.append(f"{where}: {function.name}")
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


def test_no_star_imports():
    report([where for where, node in walk(ast.ImportFrom) if node.names[0].name == "*"])


def test_handlers_name_what_they_catch():
    def broad(kind: ast.expr | None) -> bool:
        kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        return any(k is None or ast.unparse(k) in ("Exception", "BaseException") for k in kinds)

    # a handler that ends in a bare `raise` cleans up and hides nothing
    def reraises(node: ast.ExceptHandler) -> bool:
        return isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None

    report([where for where, node in walk(ast.ExceptHandler) if broad(node.type) and not reraises(node)])


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

"""A finding as a Python file that runs by itself."""

from __future__ import annotations

import inspect
import pathlib
import re
from collections.abc import Sequence

from . import shims
from .case import Case, values
from .oracle import Finding

TEMPLATE = '''# {kind}. Found with seed {seed}, backend {backend!r}; from: {rows}
#
{text}
{shims}

SOURCE = """
{source}"""


{values}

def function(names):
    space = dict(vars(names))
    exec(compile(SOURCE, __file__, "exec"), space)
    return space["f"]


def shown(f, arrays, named):
    try:
        return [np.asarray(value) for value in f(*arrays, **named)]
    except Exception as error:
        return f"{{type(error).__name__}}: {{error}}"


jitted = harp.jit(function(HARP), static_argnames="flag")
for arrays, named in (
{calls}
):
    print("shapes", [a.shape for a in arrays], {{name: np.shape(v) or v for name, v in named.items()}})
    print("NumPy:  ", shown(function(NUMPY), arrays, named))
    print("harp:   ", shown(jitted, arrays, named))
    print("afresh: ", shown(harp.jit(function(HARP), static_argnames="flag"), arrays, named), "\\n")
'''
INTERPRETER = 'import os\n\nos.environ["HARP_CC"] = "none"\n\n'


def save(
    directory: pathlib.Path, case: Case, finding: Finding, backend: str, rows: Sequence[str]
) -> pathlib.Path | None:
    """Writes the file, unless there is one of this kind with these rows."""
    name = re.sub(r"\W+", "-", "-".join([finding.kind, *rows]))[:120].strip("-")
    path = directory / f"{name}.py"
    if path.exists():
        return None
    directory.mkdir(parents=True, exist_ok=True)
    own = pathlib.Path(shims.__file__).read_text()
    path.write_text(
        TEMPLATE.format(
            kind=finding.kind,
            seed=case.seed,
            backend=backend,
            rows=", ".join(rows),
            text="\n".join(f"# {line}" for line in finding.text.splitlines()),
            shims=own.replace("import numpy", f"{INTERPRETER}import numpy", 1) if backend == "numpy" else own,
            source=case.source,
            values=inspect.getsource(values).replace(": int", "").replace(": str", "").replace(": Shape", ""),
            calls="\n".join(f"    {_call(case, k)}," for k in range(len(case.calls))),
        )
    )
    return path


def _call(case: Case, number: int) -> str:
    """The arguments of a call as Python text."""
    call = case.calls[number]
    texts = [
        f"values({case.seed + k}, {a.dtype!r}, {shape})"
        for k, (a, shape) in enumerate(zip(case.arguments, call.shapes, strict=True))
    ]
    named = [f'"flag": {call.flag}']
    if call.named and len(texts) > 1:
        named.append(f'"{case.arguments[-1].name}": {texts.pop()}')
    return f"([{', '.join(texts)}], {{{', '.join(named)}}})"

"""Programs in C that call what `harp.export` has written, and how they are compiled and run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

GCC, GXX = shutil.which("gcc") or "", shutil.which("g++") or ""
STRICT = ("-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror")
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

_MAIN = """
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of exactly these bytes, so that what is beside it is noticed. */
static void *room(size_t bytes)
{{
    void *const memory = malloc(bytes ? bytes : 1);
    if (!memory) abort();
    return memory;
}}

static void *array(size_t bytes)
{{
    void *const memory = room(bytes);
    if (fread(memory, 1, bytes, stdin) != bytes) abort();
    return memory;
}}

int main(void)
{{
    int64_t sizes[{sizes} + 1];
    while (fread(sizes, sizeof *sizes, {sizes}, stdin) == {sizes} && fread(sizes + {sizes}, 1, 1, stdin) == 1) {{
        int64_t bytes[{inputs} + 1];
        if (fread(bytes, sizeof *bytes, {inputs}, stdin) != {inputs}) abort();
        {declared}
        const int code = {name}_{entry}_shapes({shapes});
        if (code) {{
            printf("%d %s", code, {name}_message(code));
            {done}
            return 0;
        }}
        {outputs}
        const int64_t need = {name}_{entry}_scratch({given_sizes});
        if (need < 0) abort();
        void *const scratch = room((size_t)need);
        for (int twice = 0; twice < 2; ++twice) {{
            if ({name}_{entry}({arguments}, twice ? NULL : scratch)) abort();
            {written}
        }}
        {freed}
        {done}
    }}
    return 0;
}}
"""


def caller(name: str, entry: str, inputs: Sequence[str], outputs: Sequence[tuple[str, np.ndarray]], sizes: int) -> str:
    """A main function in C, and in C++: for each case on its input it writes the outputs, computed with scratch memory
    and without. `inputs` are types, `outputs` types and arrays like them."""
    given = [f"sizes[{k}]" for k in range(sizes)]
    ranks = [(k, like.ndim) for k, (_, like) in enumerate(outputs)]
    counts = [
        " * ".join([str(like.itemsize), *(f"(size_t)shape{k}[{axis}]" for axis in range(like.ndim))])
        for k, (_, like) in enumerate(outputs)
    ]
    return _MAIN.format(
        name=name,
        entry=entry,
        sizes=sizes,
        inputs=len(inputs),
        declared="\n        ".join(
            [f"{kind} *const in{k} = ({kind} *)array((size_t)bytes[{k}]);" for k, kind in enumerate(inputs)]
            + [f"int64_t shape{k}[{rank}];" for k, rank in ranks if rank]
        ),
        shapes=", ".join([*given, *(f"shape{k}" for k, rank in ranks if rank)]),
        outputs="\n        ".join(
            f"{kind} *out{k}; out{k} = ({kind} *)room({counts[k]});" for k, (kind, _) in enumerate(outputs)
        ),
        given_sizes=", ".join(given),
        arguments=", ".join(
            [*(f"in{k}" for k in range(len(inputs))), *(f"out{k}" for k in range(len(outputs))), *given]
        ),
        written="\n            ".join(f"fwrite(out{k}, 1, {counts[k]}, stdout);" for k in range(len(outputs))),
        freed=" ".join([*(f"free(out{k});" for k, _ in ranks), "free(scratch);"]),
        done=" ".join(f"free(in{k});" for k in range(len(inputs))),
    )


def types_of(header: str, entry: str) -> tuple[list[str], list[str]]:
    """The types of the inputs and of the outputs of an entry, as its header says."""
    head = next(line for line in header.splitlines() if line.startswith("int ") and f"_{entry}(const" in line)
    pointers = [part.strip() for part in head.partition("(")[2].split(",") if "*" in part and "scratch" not in part]
    inputs = [part.split()[1] for part in pointers if part.startswith("const ")]
    return inputs, [part.split()[0] for part in pointers if not part.startswith("const ")]


def compiled(folder: Path, name: str, main: str, command: Sequence[str] = (), flags: Sequence[str] = SANITIZED) -> Path:
    """The program of this main function, in C unless it is compiled as C++."""
    (folder / "main.c").write_text(main)
    program = folder / "main"
    files = ["-o", str(program), "main.c", f"{name}.c", "-lm"]
    subprocess.run([*(command or (GCC,)), *STRICT, *flags, *files], check=True, cwd=folder, timeout=600)
    return program


def run(program: Sequence[str], cases: Sequence[tuple[Sequence[int], Sequence[np.ndarray]]]) -> bytes:
    """What the program writes for these cases, sizes and arrays."""
    text = b""
    for sizes, arrays in cases:
        text += np.array(sizes, np.int64).tobytes() + b"\n"
        text += np.array([a.nbytes for a in arrays], np.int64).tobytes() + b"".join(a.tobytes() for a in arrays)
    environment = os.environ | {"OMP_NUM_THREADS": "3"}
    done = subprocess.run(program, input=text, capture_output=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout

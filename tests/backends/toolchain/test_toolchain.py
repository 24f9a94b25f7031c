"""The search for a compiler: order, broken candidates, what is remembered, and the instruction set."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.runtime.load import build_and_load
from harp.backends.toolchain import cache, compilers, machine, toolchain
from harp.backends.toolchain.build import cache_key
from harp.backends.toolchain.compilers import Family, Toolchain
from harp.backends.toolchain.process import Done
from harp.errors import ArgumentError, HarpError, ToolchainError

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
PATH = os.environ.get("PATH", "")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")
EMPTY = (Unit(""),)
SOURCE = '__attribute__((visibility("default"))) int f(int x) { return x + 1; }\n'


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """No compiler but those that a test names, and an empty cache."""
    for name in ("HARP_CC", "CC", "HARP_CC_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    toolchain.reset()
    yield
    toolchain.reset()


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def wrapper(path: Path) -> Path:
    """A compiler that writes a line to `<path>.log` for each run."""
    return script(path, f'echo "$@" >> "{path}.log"; PATH="{PATH}" exec "{CC}" "$@"')


def only(monkeypatch, *directories: Path) -> None:
    """Search these directories alone, and no zig."""
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, directories)) or "/nonexistent")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@needs_cc
def test_search_order(monkeypatch, tmp_path):
    names = [str(wrapper(tmp_path / n)) for n in ("mine", "theirs")]
    tools = [wrapper(tmp_path / "bin" / n) for n in ("cc", "gcc", "clang")]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("HARP_CC", names[0])
    monkeypatch.setenv("CC", names[1])
    chosen = []
    for forget in (lambda: monkeypatch.delenv("HARP_CC"), lambda: monkeypatch.delenv("CC"), *(t.unlink for t in tools)):
        toolchain.reset()
        chosen.append(Path(toolchain.attempts()[-1].command).name)
        forget()
    assert chosen == ["mine", "theirs", "cc", "gcc", "clang"]
    for spec, zig in ((None, []), (object(), [(sys.executable, "-m", "ziglang", "cc")])):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, spec=spec: spec)
        assert list(toolchain._candidates()) == [("cc",), ("gcc",), ("clang",), *zig]


def test_none_and_nothing(monkeypatch):
    monkeypatch.setenv("HARP_CC", " None ")
    assert toolchain.find_toolchain() is None
    assert toolchain.attempts()[0].command == "none"
    toolchain.reset()
    monkeypatch.delenv("HARP_CC")
    only(monkeypatch)
    monkeypatch.setenv("CC", "  ")
    assert toolchain.find_toolchain() is None
    assert toolchain.attempts() == [(name, "not found") for name in ("cc", "gcc", "clang")]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("echo 'no licence' >&2; exit 3", "no licence"),
        ('echo "it\'s garbage \\" "; echo "it\'s \\" broken" >&2; exit 0', "does not make a library"),
        ("exit 0", "it printed nothing"),
        ('while [ $# -gt 0 ]; do [ "$1" = -o ] && echo junk > "$2"; shift; done', "does not load"),
        ("exec /bin/sleep 100", "does not run: took longer than 0.3 s"),
    ],
)
def test_broken_compilers_are_passed_over(monkeypatch, tmp_path, body, reason):
    only(monkeypatch)
    monkeypatch.setattr(toolchain, "_PROBE_SECONDS", 0.3)
    monkeypatch.setenv("HARP_CC_TIMEOUT", "0.3" if "sleep" in body else "100")
    monkeypatch.setenv("HARP_CC", str(script(tmp_path / "bad", body)))
    assert toolchain.find_toolchain() is None
    first = toolchain.attempts()[0]
    assert first.command.endswith("bad")
    assert re.search(reason, first.reason), first.reason


@needs_cc
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no ELF files")
@pytest.mark.parametrize("size", [10, 40, 100, 9000])
def test_compiler_that_cuts_libraries_short(monkeypatch, tmp_path, size):
    only(monkeypatch)
    body = f"""PATH="{PATH}"; "{CC}" "$@" || exit 1
        while [ $# -gt 0 ]; do [ "$1" = -o ] && truncate -s {size} "$2"; shift; done"""
    monkeypatch.setenv("HARP_CC", str(script(tmp_path / "bad", body)))
    assert toolchain.tried_toolchain() is None
    assert "does not load: it is " in toolchain.attempts()[0].reason


@needs_cc
def test_what_cannot_be_started_is_passed_over(monkeypatch, tmp_path):
    broken = tmp_path / "bad"
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o755)
    monkeypatch.setenv("HARP_CC", str(broken))
    monkeypatch.setenv("CC", 'cc "')
    assert toolchain.find_toolchain() is not None
    assert [bool(a.reason) for a in toolchain.attempts()][:3] == [True, True, False]


@needs_cc
def test_program_with_spaces_and_arguments(monkeypatch, tmp_path):
    path = wrapper(tmp_path / "my tools" / "my cc")
    monkeypatch.setenv("HARP_CC", str(path))
    assert toolchain.find_toolchain().command == (str(path),)
    toolchain.reset()
    monkeypatch.setenv("HARP_CC", f'"{path}" -DX=1')
    assert toolchain.find_toolchain().command == (str(path), "-DX=1")


@pytest.mark.slow
@needs_cc
def test_found_compiler_is_remembered(monkeypatch, tmp_path):
    path = wrapper(tmp_path / "cc")
    log = Path(f"{path}.log")
    monkeypatch.setenv("HARP_CC", str(path))
    first = toolchain.find_toolchain()
    runs = len(log.read_text().splitlines())
    toolchain.reset()
    assert toolchain.find_toolchain() == first
    assert len(log.read_text().splitlines()) == runs
    os.utime(path, (1, 1))  # another compiler under the same name
    toolchain.reset()
    assert toolchain.find_toolchain() == first
    assert len(log.read_text().splitlines()) == 2 * runs
    good = json.loads(entry(first))
    crafted = [
        *(b"[]", b"{", b'["x", "tcc", 1, 2, 3, 4]', b"[" * 100_000, b"\xff", b"[" + b"9" * 10_000 + b"]"),
        *(
            json.dumps([*good[:k], wrong, *good[k + 1 :]]).encode()
            for k in range(8)
            for wrong in (None, 1, [1], [[]], {})
        ),
        *(json.dumps([*good[:4], width, *good[5:]]).encode() for width in (0, -1, 10**30, True)),
    ]
    for content in crafted:
        cache.put(compilers.key_of((str(path),)), ".json", content)
        toolchain.reset()
        assert toolchain.find_toolchain() == first, content


def entry(found: Toolchain) -> bytes:
    """What the cache has of a compiler."""
    fields = [*found._replace(family=found.family.value), machine.system(), machine.features()]
    return json.dumps(fields).encode()


def remember(found: Toolchain) -> None:
    """What an earlier process would have left."""
    cache.put(compilers.key_of(found.command), ".json", entry(found))
    toolchain.reset()


@needs_cc
@pytest.mark.parametrize("wrong", [{"isa": ("-mno-such-feature",)}, {"command": ("/bin/false",)}])
def test_wrong_memory_is_found_out_again(monkeypatch, tmp_path, wrong):
    monkeypatch.setenv("HARP_CC", str(wrapper(tmp_path / "cc")))
    found = toolchain.find_toolchain()
    key = compilers.key_of(found.command)
    cache.put(key, ".json", entry(found._replace(**wrong)))
    toolchain.reset()
    library = build_and_load(Source((Unit(SOURCE),)), CompileOptions())
    assert library.function("f", "int(*)(int)")(1) == 2
    toolchain.reset()
    assert toolchain.find_toolchain() == found


@needs_cc
def test_a_right_memory_is_examined_once(monkeypatch, tmp_path):
    path = wrapper(tmp_path / "cc")
    monkeypatch.setenv("HARP_CC", str(path))
    remember(toolchain.find_toolchain())
    runs = []
    for _ in range(2):
        Path(f"{path}.log").write_text("")
        with pytest.raises(ToolchainError, match="error: "):
            build_and_load(Source((Unit("int f("),)), CompileOptions())
        runs.append(len(Path(f"{path}.log").read_text().splitlines()))
    assert runs[0] > runs[1] == 1


@needs_cc
def test_compiler_that_no_longer_works_is_replaced(monkeypatch, tmp_path):
    licence = tmp_path / "licence"
    licence.touch()
    path = script(tmp_path / "my-cc", f'[ -e "{licence}" ] && exec "{CC}" "$@"; echo no licence >&2; exit 1')
    monkeypatch.setenv("HARP_CC", str(path))
    remember(toolchain.find_toolchain())
    licence.unlink()
    library = build_and_load(Source((Unit(SOURCE),)), CompileOptions())
    assert library.function("f", "int(*)(int)")(1) == 2
    assert "no licence" in toolchain.attempts()[0].reason


@needs_cc
def test_instruction_set_is_resolved(monkeypatch):
    found = toolchain.find_toolchain()
    assert not any("native" in flag for flag in (*found.isa, *toolchain.base_flags(found)))
    assert set(found.isa) <= set(toolchain.base_flags(found))
    other = found._replace(isa=("-march=x86-64",))
    assert cache_key(EMPTY, toolchain.base_flags(found), found) != cache_key(EMPTY, toolchain.base_flags(other), other)
    assert cache_key(EMPTY, (), found) != cache_key(EMPTY, (), found._replace(version="2"))


@pytest.mark.parametrize(
    ("tune", "width", "expected"),
    [("znver3", 64, "skylake-avx512"), ("znver3", 32, "znver3"), ("znver4", 64, "znver4"), ("icelake", 64, "icelake")],
)
def test_wide_vectors_of_a_processor_that_gcc_does_not_know_cost_what_those_of_another_do(tune, width, expected):
    found = Toolchain(("gcc",), Family.GCC, "gcc 12.2.0", ("-march=znver3", f"-mtune={tune}"), width, True)
    assert [flag for flag in toolchain.base_flags(found) if flag.startswith("-mtune=")][-1] == f"-mtune={expected}"


def test_flags_of_each_family():
    for family in Family:
        for width in (16, 64):
            flags = toolchain.base_flags(Toolchain(("cc",), family, "", ("-mavx",), width, True))
            assert ("-mprefer-vector-width=512" in flags) == (width == 64)
            assert ("-g0" in flags) == (family is Family.ZIG)
            assert not any("fast-math" in flag or flag == "-Ofast" for flag in flags)
            own = toolchain.program_flags(Toolchain(("cc",), family, "", ("-mavx",), width, True))
            assert (own != ()) == (family is Family.GCC) and not {*own} & {*flags}


def answer(monkeypatch, processor: str, stderr: str) -> None:
    monkeypatch.setattr(toolchain.platform, "machine", lambda: processor)
    done = Done(0, "", stderr)
    monkeypatch.setattr(toolchain, "run", lambda *args: done)


@pytest.mark.parametrize(
    ("processor", "family", "stderr", "flags"),
    [
        (
            "x86_64",
            Family.CLANG,
            '"-target-cpu" "alderlake"\n "-target-feature" "+avx2" "-target-feature" "-sse4a"',
            ("-march=alderlake", "-mavx2", "-mno-sse4a"),
        ),
        ("arm64", Family.CLANG, '"-target-cpu" "apple-m1" "-target-feature" "+neon"', ("-mcpu=apple-m1",)),
        ("x86_64", Family.CLANG, '"-target-cpu" "native"', ()),
        (
            "x86_64",
            Family.ZIG,
            '"-target-cpu" "x86-64" "-target-cpu" "zn" "-target-feature" "+sse4.1"',
            ("-mcpu=zn+sse4_1",),
        ),
        ("x86_64", Family.ZIG, "error", ("-mcpu=baseline",)),
        ("x86_64", Family.ZIG, "it's", ("-mcpu=baseline",)),
        (
            "x86_64",
            Family.GCC,
            "cc1 -march=znver3 -mavx --param l1-cache-size=32 -mtune=native -m64 -march=native",
            ("-march=znver3", "-mavx", "--param=l1-cache-size=32"),
        ),
    ],
)
def test_native_flags(monkeypatch, processor, family, stderr, flags):
    answer(monkeypatch, processor, stderr)
    assert toolchain._native_isa(("cc",), family, Path()) == flags


def test_caches_are_as_the_compiler_says():
    known = Toolchain(("cc",), Family.GCC, "", ("--param=l1-cache-size=48", "--param=l1-cache-line-size=128"), 32, True)
    assert (known.l1, known.line) == (48 << 10, 128)
    for isa in ((), ("--param=l1-cache-size=0",), ("--param=l1-cache-size=many",), ("--param=l1-cache-size=²",)):
        assert (known._replace(isa=isa).l1, known._replace(isa=isa).line) == (32 << 10, 64)


@needs_cc
def test_unknown_features_give_the_plain_instruction_set(monkeypatch):
    monkeypatch.setattr(toolchain, "_native_isa", lambda *_: ("-mno-such-feature",))
    found = toolchain.find_toolchain()
    assert found.isa == toolchain._plain(found.family)


def test_processor(monkeypatch):
    assert toolchain._vector_bytes("#define __AVX512F__ 1") == 64
    assert toolchain._vector_bytes("#define __AVX2__ 1") == 32
    assert toolchain._vector_bytes("") == 16

    def fail(*args, **kwargs):
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", fail)
    assert machine.facts() == toolchain.platform.processor() and machine.features() == ()


@pytest.mark.parametrize(("text", "seconds"), [("", 7), ("2.5", 2.5), ("x", 7), ("-1", 7), ("nan", 7), ("inf", 7)])
def test_time_limit(monkeypatch, text, seconds):
    monkeypatch.setenv("HARP_CC_TIMEOUT", text)
    assert toolchain.time_limit(7) == seconds


@pytest.mark.parametrize("text", ["1e308", "1e12"])
def test_endless_time_limit(monkeypatch, tmp_path, text):
    monkeypatch.setenv("HARP_CC_TIMEOUT", text)
    assert toolchain.run((sys.executable, "-c", "print(1)"), tmp_path).stdout == "1\n"


def test_wrong_time_limit_is_named_once(monkeypatch, caplog):
    monkeypatch.setattr(toolchain, "_refused", set())
    monkeypatch.setenv("HARP_CC_TIMEOUT", "abc")
    for _ in range(3):
        toolchain.time_limit(7)
    assert caplog.messages == ["HARP_CC_TIMEOUT='abc' is not a number of seconds: ignored"]


def test_zig(monkeypatch):
    pytest.importorskip("ziglang")
    monkeypatch.setenv("HARP_CC", f'"{sys.executable}" -m ziglang cc')
    found = toolchain.find_toolchain()
    assert found.family is Family.ZIG, toolchain.attempts()
    assert found.isa[0].startswith("-mcpu=") and "native" not in found.isa[0]
    library = build_and_load(Source((Unit(SOURCE),)), CompileOptions())
    assert library.function("f", "int(*)(int)")(1) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"optimize": 4},
        {"optimize": -1},
        {"optimize": True},
        {"optimize": "2"},
        {"debug": 1},
        {"extra_flags": ["-g"]},
        {"extra_flags": "-g"},
        {"extra_flags": (1,)},
        {"extra_flags": ("-a\0b",)},
        {"extra_flags": ("-march=native",)},
        *({"extra_flags": (flag,)} for flag in ("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-mdaz-ftz")),
        *({"extra_flags": ("-g", flag)} for flag in ("-c", "-S", "-E", "-o", "-ofile", "--output=x", "--compile")),
    ],
)
def test_options_are_checked(wrong):
    with pytest.raises(ArgumentError, match="CompileOptions") as caught:
        CompileOptions(**wrong)
    assert isinstance(caught.value, HarpError)


def test_options():
    assert CompileOptions(3, True, ("-funroll-loops",)).flags() == ("-O3", "-g", "-funroll-loops")
    assert CompileOptions() == CompileOptions(2) and len({CompileOptions(), CompileOptions(1), CompileOptions(2)}) == 2

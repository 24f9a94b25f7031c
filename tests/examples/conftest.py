"""Examples are loaded from their files: `examples` is no package."""

import importlib.util
import pathlib
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"


def load_example(name):
    """An example as a module of its own, with programs of its own to count."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # harp names a function's line; named tuples look up their module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module


@pytest.fixture(scope="session")
def load():
    return load_example


@pytest.fixture
def run(tmp_path, capsys):
    """Runs an example with these options; what it printed, after a look at its picture."""

    def run(example, *options):
        picture = tmp_path / "picture.png"
        assert example.main([*options, "--output", str(picture)]) == 0
        assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        return capsys.readouterr().out

    return run

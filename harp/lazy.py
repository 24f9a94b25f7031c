"""Names that are imported when they are first asked for: of namespaces, and of functions that lower layers call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from harp.locks import importing


class Names(dict[str, Any]):
    """Objects by name; one that is missing is imported from its module.

    A row says in which module names are defined. `new=old` gives an object another name, and a row that ends with a dot
    names modules of a package.

    >>> names = Names({"math": "floor root=sqrt", "importlib.": "util"})
    >>> names["root"](9.0), names["util"].__name__
    (3.0, 'importlib.util')
    """

    def __init__(self, rows: Mapping[str, str]) -> None:
        super().__init__()
        pairs = [(module, *name.partition("=")) for module, names in rows.items() for name in names.split()]
        self.homes = {name: (module, old or name) for module, name, _, old in pairs}

    def __missing__(self, name: str) -> Any:
        module, old = self.homes[name]
        with importing:
            found = import_module(module + old) if module.endswith(".") else getattr(import_module(module), old)
            self[name] = found
            return found


def namespace(
    module: dict[str, Any], names: Names, finish: Callable[[str, Any], None] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a module with these globals and names; `finish` gets each object.

    No module of harp takes names out of such a namespace while it is imported: a thread would wait for `importing` and
    hold a module that the owner of `importing` waits for.
    """
    listed = sorted(name for name in names.homes if not name.startswith("_"))

    def find(name: str) -> Any:
        # Asked for each module in `from harp.numpy import module` too, in the middle of an import: without the lock.
        if name not in names.homes:
            if any(home == f"{module['__name__']}.{name}" for home, _ in names.homes.values()):
                raise AttributeError(name)  # Python imports the module now: nobody reads a text, which takes 5 ms
            raise import_module("harp.numpy.missing").no_such_name(module["__name__"], name, listed)
        with importing:
            found = names[name]
            if finish is not None:
                finish(name, found)
            module[name] = found
            return found

    return find, lambda: sorted({*names.homes, *(name for name in module if name.startswith("__"))}), listed


FUNCTIONS = Names(
    {
        "harp.trace.array.arithmetic": "add subtract multiply divide floor_divide remainder power negative positive "
        "abs=absolute real imag equal not_equal less less_equal=less_equal_ greater greater_equal astype "
        "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift",
        "harp.trace.array.advanced": "getitem",
        "harp.trace.array.updates": "at_get=get at_put=put",
        "harp.trace.array.numpy_functions": "__array_ufunc__=of_elements __array_function__=of_arrays",
        "harp.backends.devices": "to_device",
        "harp.numpy.creation": "asarray",
        "harp.numpy.cumulative": "cumsum cumprod",
        "harp.numpy.elementwise": "clip round",
        "harp.numpy.linalg.products": "matmul dot",
        "harp.numpy.manipulation": "transpose matrix_transpose reshape squeeze ravel",
        "harp.numpy.reductions": "sum prod max min mean var std any all argmax argmin",
        "harp.numpy.sets": "nonzero",
        "harp.numpy.interchange": "to_arrow",
        "harp.lax.bits": "view",
        "harp.": "numpy",
    }
)

"""How a compiled program is called: the names and the C types of what its library exports."""

from __future__ import annotations

from typing import NamedTuple

# Few parameters are passed one by one. From so many arrays on they are read at once (`arguments.py`), from so many
# parameters on cffi cannot pass them otherwise.
_ARRAYS, _PARAMETERS = 6, 100


class Interface(NamedTuple):
    """How many arrays and sizes a program takes. The captured arrays are inputs."""

    inputs: int
    outputs: int
    sizes: int

    @property
    def packed(self) -> bool:
        """Whether there are so many parameters that they are passed in arrays."""
        return self.inputs + self.outputs >= _ARRAYS or sum(self) > _PARAMETERS

    @property
    def names(self) -> tuple[str, str]:
        """The functions that run it, and that say how much scratch memory that takes."""
        suffix = "_packed" if self.packed else ""
        return f"harp_run{suffix}", f"harp_scratch{suffix}"

    @property
    def types(self) -> tuple[str, str]:
        """Their types."""
        if self.packed:
            return "int(*)(void **, int64_t *)", "int64_t(*)(int64_t *)"
        sizes = ["int64_t"] * self.sizes
        run = ", ".join(["void *"] * (self.inputs + self.outputs) + sizes) or "void"
        return f"int(*)({run})", f"int64_t(*)({', '.join(sizes) or 'void'})"

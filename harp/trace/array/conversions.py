"""From arrays to what is no array: numbers, text, bytes, other libraries. All of it needs a buffer, not a trace."""

from __future__ import annotations

import operator
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from harp.config import CPU
from harp.errors import ArgumentError, DTypeError, InterchangeError, ShapeError
from harp.lazy import FUNCTIONS
from harp.trace.array.questions import ELEMENT, INTEGER, LIST, TRUTH, VALUES
from harp.trace.scalar.dtypes import NDArray
from harp.trace.source_locations import where

STANDARDS = ("2021.12", "2022.12", "2023.12", "2024.12")  # of the array API
_DLPACK_CPU = 1, 0  # kDLCPU of the protocol, and the number of the device
_NUMPY_MARKS_READ_ONLY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
_MOST_ROWS = 20  # of text that a notebook shows


def require_device(device: object) -> None:
    """Raise InterchangeError for any device but the one that there is; None leaves the choice to harp."""
    if device is not None and device != CPU:
        raise InterchangeError(
            f"device {device!r}: arrays are made on {CPU!r}; harp.device_put(x, device) puts them elsewhere{where()}"
        )


class Conversions:
    """The methods of arrays that hand their numbers to Python or to other libraries."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _concrete(self, what: str) -> NDArray: ...

    # -- numbers

    def item(self, *index: Any) -> Any:
        """One element as a Python number: the only one, or the one at this index, as in NumPy."""
        return self._concrete(ELEMENT).item(*index) if index else self._single(ELEMENT)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self._concrete(LIST).tolist()

    def __float__(self) -> float:
        return float(self._real("a Python float", "a float"))

    def __int__(self) -> int:
        return int(self._real("a Python int", "an integer"))

    def _single(self, asked: str) -> Any:
        value = self._concrete(asked)
        if value.size != 1:
            several = "; reduce it by .any() or .all()" if asked == TRUTH else ""
            kind = "truth value" if asked == TRUTH else "number"
            raise ShapeError(
                f"only an array of one element is a {kind}, not one of shape {value.shape}{several}{where()}"
            )
        return value.item()

    def _real(self, asked: str, what: str) -> Any:
        value = self._single(asked)
        if isinstance(value, complex):
            raise DTypeError(f"a complex number is not {what}; use harp.numpy.real or harp.numpy.abs{where()}")
        return value

    def __complex__(self) -> complex:
        return complex(self._single("a Python complex number"))

    def __bool__(self) -> bool:
        return bool(self._single(TRUTH))

    def __index__(self) -> int:
        return operator.index(self._concrete(INTEGER))  # a TypeError for what is no integer

    # -- memory

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        value = self._concrete(VALUES)
        if copy or (dtype is not None and np.dtype(dtype) != value.dtype):
            return np.array(value, dtype=dtype, copy=copy)
        return value.view()

    def __buffer__(self, flags: int) -> memoryview:
        exported: Any = self._concrete("the memory of the values").view()
        return memoryview(exported)

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        value: Any = self._concrete("the memory of the values")
        if stream is not None or (dl_device is not None and tuple(dl_device) != _DLPACK_CPU):
            raise InterchangeError(
                f"arrays live in the memory of the CPU, without streams: ask for no other device{where()}"
            )
        # torch takes the mark of memory that is not to be written to, and writes to it.
        asks = sys._getframe(1).f_globals.get("__name__", "")
        try:
            return _capsule(value, max_version, copy or (True if asks.startswith("torch.") and copy is None else copy))
        except BufferError as error:
            raise InterchangeError(f"an array of {value.dtype} cannot be shared by DLPack: {error}{where()}") from None

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """A vector as a column of Arrow, by the package nanoarrow."""
        result: tuple[object, object] = FUNCTIONS["to_arrow"](self, requested_schema)
        return result

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CPU

    @property
    def device(self) -> str:
        """Where the numbers are: "cpu", or as in "opencl:0"."""
        return CPU

    def to_device(self, device: object, /, *, stream: object = None) -> Self:
        """The array on a device of `harp.devices()`: itself, if it is there or belongs to a trace, else a copy.

        Raises DeviceError for devices that are not there, InterchangeError for streams.
        """
        if stream is not None:
            raise InterchangeError(f"a device has no streams here, not {stream!r}{where()}")
        moved: Self = FUNCTIONS["to_device"](self, device)
        return moved

    def realize(self) -> Self:
        """The array itself: outside of a trace its numbers are there, inside they are when the program runs."""
        return self

    # -- other libraries

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        if api_version is not None and api_version not in STANDARDS:
            raise ArgumentError(
                f"version {api_version!r} of the array API is not known; {', '.join(STANDARDS)} are{where()}"
            )
        namespace: ModuleType = FUNCTIONS["numpy"]
        return namespace

    def _repr_html_(self) -> str:
        lines = repr(self).splitlines()
        if len(lines) > _MOST_ROWS:
            lines = [*lines[: _MOST_ROWS // 2], "...", *lines[-_MOST_ROWS // 2 :]]
        text = "\n".join(lines)
        for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            text = text.replace(character, entity)
        return f'<pre style="font-family:var(--jp-code-font-family,monospace)">{text}</pre>'  # columns stay aligned


def _capsule(value: Any, max_version: tuple[int, int] | None, copy: bool | None) -> object:
    """The memory itself for those who can be told that they may not write to it, else a copy."""
    knows = max_version is not None and max_version[0] >= 1 and _NUMPY_MARKS_READ_ONLY
    if copy or (copy is None and not knows):
        return value.copy().__dlpack__()
    if not knows:
        raise BufferError("memory that may not be written to needs DLPack 1.0; leave out copy=False")
    return value.__dlpack__(max_version=max_version)

"""Every error that a user of harp can cause, one type per cause.

Messages name the argument, axis and sizes, the user's file and line where one is known, and one thing to do.
Each type also derives from the built-in exception that NumPy users would catch.
"""

from __future__ import annotations

import numpy as np


class HarpError(Exception):
    """Base of all errors that harp raises on purpose."""


class ShapeError(HarpError, ValueError):
    """Sizes, ranks or axes do not fit together."""


class AxisError(ShapeError, IndexError):
    """An axis number is out of range for the rank, or named twice."""


class IndexOutOfRangeError(HarpError, IndexError):
    """An integer index lies outside its axis."""


class DTypeError(HarpError, TypeError):
    """An operation does not accept this dtype."""


class UnsupportedDTypeError(DTypeError):
    """The dtype has no place in harp: object, string, structured, ..."""


class InterchangeError(HarpError, BufferError, ValueError):
    """A device that harp does not have, or memory that cannot be shared with another library."""


class MissingPackageError(DTypeError, ImportError):
    """A dtype needs a package that is not installed."""


class IntegerRangeError(HarpError, OverflowError):
    """A Python integer does not fit the dtype that it takes on."""


class SizeDivisionError(HarpError, ZeroDivisionError):
    """A size was divided by zero."""


class ArgumentError(HarpError, TypeError):
    """An argument is not an array, a number, or a tree of these."""


class TreeError(ArgumentError, ValueError):
    """A tree has another structure than the one that it is to have."""


class SignatureError(HarpError, TypeError):
    """An argument does not fit the declared signature (rank, dtype, or a size that was declared constant)."""


class StaticArgumentError(HarpError, TypeError):
    """A static argument cannot be hashed and compared."""


class OutputError(HarpError, TypeError):
    """A traced function returned something that is not an array, a number, or a tree of these."""


class LeakedTracerError(HarpError, RuntimeError):
    """An array or a size of one trace was used outside it."""


class DonatedError(HarpError, RuntimeError):
    """An array was used after it had been donated to a call."""


class ConcretizationError(HarpError, TypeError):
    """Python asked for the value of an array that is only known when the program runs."""


class InconclusiveSizeError(HarpError, ValueError):
    """A question about sizes has no answer: there is no call at hand and the declarations do not decide it."""


class MutationError(HarpError, TypeError):
    """Arrays are immutable: item assignment and in-place change are not possible."""


class MissingRuleError(HarpError, NotImplementedError):
    """A transform has no rule for an operation."""


class GradientError(HarpError, TypeError):
    """A gradient was asked for where there is none."""


class NonScalarGradientError(GradientError):
    """`grad` needs a function with one scalar result."""


class IntegerGradientError(GradientError):
    """`grad` needs floating-point arguments and results."""


class ComplexGradientError(GradientError):
    """The gradient of a complex result is asked for, or `holomorphic` of a function that is not complex."""


class ClosureGradientError(GradientError):
    """A derivative would flow into an array that a function with derivatives of its own has closed over."""


class CotangentError(GradientError, ValueError):
    """The cotangent given to a vjp function does not match the result."""


class TangentError(GradientError, ValueError):
    """The tangents given to a forward-mode function do not match its arguments."""


class BatchError(HarpError, ValueError):
    """The axes that vmap maps over do not fit the arguments, each other, or the result."""


class NestingError(HarpError, RecursionError):
    """Loops and branches lie in each other deeper than Python's recursion limit lets them be compiled, or a traced
    function calls itself without an end."""


class CarryError(HarpError, TypeError):
    """What a loop carries changes its tree, dtype or rank, or branches return what differs."""


class OutOfMemoryError(HarpError, MemoryError):
    """The sizes of a call need more memory than there is."""


class CallbackError(HarpError, ValueError):
    """A function of `harp.pure_callback` returned something else than was declared."""


class KernelError(HarpError, RuntimeError):
    """A kernel of `harp.kernel` is not well declared, has no source for a device, or its compiler refuses it."""


class ExportError(HarpError, NotImplementedError):
    """`harp.export` cannot write a function as C: it calls Python or LAPACK, or has a check that needs Python."""


class FormatError(HarpError, ValueError):
    """`harp.debug.print` has a placeholder that no argument fits."""


class FileError(HarpError, ValueError):
    """A file is damaged, or of another format than it is read as."""


class NotFiniteError(HarpError, FloatingPointError):
    """An operation gave a NaN or an infinity that none of its operands was, where `harp.debug.nans` looks for that."""


class CheckError(HarpError, RuntimeError, ValueError):
    """A check of `harp.jax.experimental.checkify` has failed."""


class PromotionWarning(UserWarning):
    """A float32 array became float64 in a function of `harp.jit(f, warn_promotion=True)`."""


class LinAlgError(NotFiniteError, np.linalg.LinAlgError):
    """A matrix is singular, not positive definite, or its eigenvalues or singular values were not found."""


class ToolchainError(HarpError, RuntimeError):
    """The C compiler is missing, failed, or produced something that cannot be loaded."""


class DeviceError(HarpError, RuntimeError):
    """A device is not there, cannot run a program, or has failed."""


class CacheError(HarpError, RuntimeError):
    """`python -m harp cache` cannot do what it was asked: a file, a size or a directory is at fault."""


class VerificationError(HarpError, AssertionError):
    """An intermediate program broke one of harp's own invariants: a bug in harp, please report it."""


class AddressError(VerificationError):
    """A checked program would have left an array: a bug in harp, please report it."""

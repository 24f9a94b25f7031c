"""Modules that tests share: `accuracy` is of those of C's elementwise functions."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

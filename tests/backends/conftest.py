"""The tests of C's elementwise functions share the module `accuracy`."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

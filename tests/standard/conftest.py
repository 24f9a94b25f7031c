"""The tests of the array API standard share the modules `status`, `cases` and `draws`."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

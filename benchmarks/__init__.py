"""Measurements: `python -m benchmarks` compares harp with its peers; the other modules run on their own."""

import os
import sys

# What is measured is harp as it is installed, with byte code.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ.setdefault("HARP_QUICK", "0")  # and the optimised program, however soon it is called

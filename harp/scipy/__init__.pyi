# Written by tests/types/stubs.py.
from harp.scipy import linalg as linalg, special as special, stats as stats

# Written by tests/types/stubs.py.
from harp.scipy import special as special, stats as stats

"""A loop nest that sums, scans or searches comes in; a faster order of its steps goes out.

`chunks.py` splits sums over everything and along long rows, and `scan.py` running sums. The order depends on strides
and lengths only, so a row has the same bits in every batch and with any number of threads.
Read `contraction.py` first.
"""

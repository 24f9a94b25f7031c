"""Questions about the sizes of a trace come in; answers go out, by proof or by a guard that later calls check.

What was learnt becomes the `GraphSignature` of the program.
Read `scope.py` first, then `size.py`, which is what users see.
"""

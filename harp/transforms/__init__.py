"""Functions come in; functions go out: their gradients, or the same function compiled.

`autodiff` goes from graph to graph; `jit` joins tracing, lowering and backends.
Read `autodiff/grad.py` and `jit/jit.py` first.
"""

"""Functions come in; functions go out: their derivatives, the same for a batch, or compiled.

`autodiff` and `batching` go from graph to graph; `jit` joins tracing, lowering and backends.
Read `autodiff/grad.py` and `jit/jit.py` first.
"""

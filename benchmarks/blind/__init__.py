"""Programs as users of NumPy write them, in float32 for the most part: `python -m benchmarks blind --help`.

They were written from NumPy's documentation, before harp ran any of them.
"""

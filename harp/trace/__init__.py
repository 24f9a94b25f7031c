"""What a program is: sizes, scalar expressions, views, graph nodes, arrays, tracing, and the NumPy interpreter."""

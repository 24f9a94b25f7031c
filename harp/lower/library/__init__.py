"""Instruction selection: loop nests that a function of the library computes become calls of it.

Kernels come in as loops, after all rewrites; calls go out, which backends print as they are. Start at `select`.
"""

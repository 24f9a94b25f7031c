"""Kernels come in as loop nests, after all rewrites; calls of library functions, where these compute the same, go out.

This is instruction selection: backends print the calls as they are.
Read `select.py` first.
"""

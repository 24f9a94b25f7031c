"""C source comes in; a shared library goes out, from the cache or from the C compiler of this machine.

Nothing here knows the loop IR.
Read `build.py` first, then `toolchain.py`.
"""

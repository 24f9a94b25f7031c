"""A graph comes in; a kernel for each node that is kept in memory goes out, in its naive form.

What is not kept is computed inside its readers.
Read `schedule.py` first, then `build.py`.
"""

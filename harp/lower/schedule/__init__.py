"""A graph comes in; a kernel for each node that is kept in memory goes out, in its naive form.

Other nodes are computed inside of their users.
Read `schedule.py` first, then `build.py`.
"""

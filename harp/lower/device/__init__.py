"""What a device with many work-items needs: which loops are launched as a grid, and which run on the host.

A device is "wide" if its work-items are lanes of vectors, as on a graphics processor; else each of them has a core.
Read `grid.py` first, then `share.py`, which chooses the nests that groups of work-items share.
"""

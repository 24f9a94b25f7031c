"""What a device with many work-items needs: which loops are launched as a grid, and which run on the host.

Read `grid.py`.
"""

"""OpenCL: the same loop nests as launches on a device.

A program comes in, lowered for a grid; kernels in OpenCL C and the Python code that launches them go out.
Read `backend.py` first.
"""

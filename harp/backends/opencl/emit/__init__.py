"""Launches of the loop IR as OpenCL C."""

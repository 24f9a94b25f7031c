"""What programs call that harp has not made: functions of Python.

Imports: `harp.trace`.
"""

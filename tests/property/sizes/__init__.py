"""A fuzzer of size guards: random functions of sizes, called at many sizes, against NumPy.

`statements` has the rows that functions are made of, `grammar` draws a case from a seed, `oracle` runs it and compares,
`shrink` makes it small, `worker` runs cases in a process that may crash.
"""

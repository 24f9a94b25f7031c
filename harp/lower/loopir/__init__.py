"""The loop IR, between a schedule and C: loop nests, buffers, programs, and the queries that all passes make.

Statements come in; their text, effects and dependences, and rewritten statements, go out.
Read `loops.py` first: it has the grammar.
"""

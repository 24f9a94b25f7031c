"""A graph of one example comes in; the graph of a batch of them goes out, with a leading axis where they differ.

Read `rules.py` first: one rule for each kind of node.
"""

"""The stages of a program come in; a page that shows them side by side, linked line by line, goes out.

The page is one file that loads nothing.
Read `links.py` first.
"""

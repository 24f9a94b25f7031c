"""The stages of a program come in; a page that shows them beside each other, linked line by line, goes out.

The page is one file that loads nothing.
Read `links.py` first.
"""

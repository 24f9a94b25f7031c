"""What Sphinx makes of the pages that `pages.py` writes: see `make site`."""

import builtins
import re
from pathlib import Path

from sphinx.addnodes import pending_xref

project = author = "harp"
release = re.findall(r'__version__ = "(.*)"', (Path(__file__).parents[2] / "harp" / "__init__.py").read_text())[0]
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"harp {release}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
myst_heading_anchors = 4  # links to headings, as code hosts name them
python_maximum_signature_line_length = 96
toc_object_entries_show_parents = "hide"
nitpick_ignore_regex = [("py:class", ".*")]  # types in signatures, which are written in short
nitpicky = True
templates_path = []


def setup(app):
    """Types of Python in signatures, such as `bool`, do not lead to the dtypes of these names."""
    app.connect("doctree-read", lambda app, doctree: [unlink(node) for node in [*doctree.findall(pending_xref)]])


def unlink(node):
    """Leave only the text of a reference to a type of Python."""
    if node.get("reftype") == "class" and hasattr(builtins, node["reftarget"]):
        node.replace_self(node.children)

"""Configure Sphinx, which builds the site from the files that `tools.site` staged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tools.site.docstrings import as_restructured_text
from tools.site.front import front_page, titles

project = "flexwire"
copyright = "the flexwire project"  # noqa: A001 - Sphinx's name
version = release = os.environ["FLEXWIRE_SITE_VERSION"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_heading_anchors = 4
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
default_role = "code"
# A block without a language contains figures, a drawing or lines of a file, not Python.
highlight_language = "none"
# If two classes share a name (Kafka's message and KIP-82's), each page links to its own class.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = "flexwire"
html_copy_source = False
html_show_sourcelink = False
templates_path = [os.environ["FLEXWIRE_SITE_TEMPLATES"]]
_root = Path(os.environ["FLEXWIRE_SITE_ROOT"])
# The site's own files, the pictures in docs, and the sections of pages (tools/site/staging.py).
html_static_path = [os.environ["FLEXWIRE_SITE_STATIC"], str(_root / "docs" / "images"), "static"]
html_favicon = str(Path(os.environ["FLEXWIRE_SITE_STATIC"]) / "mark.svg")
html_context = {
    "front": front_page((_root / "README.md").read_text(encoding="utf-8")),
    "front_titles": titles(_root),
}
html_css_files = ["site.css"]
html_js_files = [
    "../../versions.js",
    "sections.js",
    "versions-menu.js",
    "cards.js",
    "search-sections.js",
]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}


def setup(app: Any) -> None:
    """Register the function that reads docstrings; Sphinx calls this."""
    app.connect("autodoc-process-docstring", as_restructured_text)

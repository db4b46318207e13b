"""How the site is built from the pages: ``make docs``.

The pages are plain Markdown, to be read as they are. Two things are added for the site: the
navigation, which is what ``docs/README.md`` links to under each of its headings; and the reference,
for each name in the first column of the tables of ``api.md`` and ``extending.md``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import falsify_adapters

INDEX = "docs/README"
#: Pages that lead on to the pages in a folder.
FOLDERS = {"docs/studies": "docs/studies/"}
#: Pages whose tables name what is documented: public names, and modules.
REFERENCE = ("docs/api", "docs/extending")

project = "falsify-adapters"
author = copyright = "The falsify-adapters developers"
version = release = falsify_adapters.__version__

# the source is the project's folder, so that links between README, docs and notebooks are the
# same in a checkout and on the site
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = INDEX
source_suffix = {".md": "markdown"}
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = [".*", "build", "dist", "falsify_adapters", "notebooks", "tests", "site"]

myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say more
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False

highlight_language = "text"  # blocks that name no language
smartquotes = False  # --tau is no dash

html_theme = "furo"
html_title = f"falsify-adapters {version}"
html_copy_source = False
html_show_sphinx = False
html_css_files = ["site.css"]
html_static_path = ["_static"]
pygments_style = "default"
pygments_dark_style = "monokai"


def navigation(text: str) -> str:
    """Return toctrees for the index: under each of its headings, the pages that it links to."""
    sections = [part.partition("\n") for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]
    return "".join(_toctree(_linked(body), caption) for caption, _, body in sections)


def _linked(text: str) -> list[str]:
    """Return the pages that a page in ``docs`` links to, each once, as lines of a toctree."""
    lines = {}
    for title, link in re.findall(r"\[([^\]]+)\]\(([^):#]+\.md)\)", text):
        page = os.path.normpath(f"docs/{link}").removesuffix(".md")
        lines.setdefault(page, f"{title[:1].upper()}{title[1:]} </{page}>")
    return list(lines.values())


def _toctree(lines: list[str], caption: str = "") -> str:
    head = [":hidden:", f":caption: {caption}"] if caption else [":hidden:"]
    return "\n".join(["", "```{toctree}", *head, "", *lines, "```", ""]) if lines else ""


def reference(text: str, docname: str) -> str:
    """Return the page with the documentation of the names in each table below it."""

    def documented(table: re.Match[str]) -> str:
        names = re.findall(r"^\| `([\w.]+)`", table[0], re.MULTILINE)
        directives = "\n".join(_directive(name, docname) for name in names)
        return f"{table[0]}\n```{{eval-rst}}\n{directives}```\n" if names else table[0]

    return re.sub(r"(?:^\|.*\n)+", documented, text, flags=re.MULTILINE)


def _directive(name: str, docname: str) -> str:
    if docname != "docs/api":
        # public names have their place already
        public = ", ".join(falsify_adapters.__all__)
        lines = [f".. automodule:: falsify_adapters.{name}", "   :members:"]
        return "\n".join([*lines, f"   :exclude-members: {public}", "", ""])
    if isinstance(getattr(falsify_adapters, name), type):
        return f".. autoclass:: falsify_adapters.{name}\n   :members:\n\n"
    return f".. autofunction:: falsify_adapters.{name}\n\n"


def public_name(app: Any, _env: Any, node: Any, shown: Any) -> Any:
    """Lead a reference to the module that holds a public name to the name's own place."""
    name = node.get("reftarget", "").rpartition(".")[2]
    if node.get("refdomain") != "py" or name not in falsify_adapters.__all__:
        return None
    place, target = node["refdoc"], f"falsify_adapters.{name}"
    domain = app.env.get_domain("py")
    return domain.resolve_xref(app.env, place, app.builder, "obj", target, node, shown)


def complete(_app: Any, docname: str, source: list[str]) -> None:
    """Add to a page what only the site has."""
    if docname == INDEX:
        source[0] += navigation(source[0])
    elif docname in FOLDERS:
        pages = _linked(source[0])
        source[0] += _toctree([page for page in pages if FOLDERS[docname] in page])
    elif docname in REFERENCE:
        source[0] = reference(source[0], docname)


def write_entry(app: Any, failed: Exception | None) -> None:
    """Write the page at the site's root, which leads to the index."""
    if failed is None and app.builder.format == "html":
        (Path(app.outdir) / "index.html").write_text(
            '<!doctype html><meta charset="utf-8"><title>falsify-adapters</title>'
            f'<meta http-equiv="refresh" content="0; url={INDEX}.html">'
            f'<a href="{INDEX}.html">falsify-adapters</a>\n',
            encoding="utf-8",
        )


def setup(app: Any) -> dict[str, bool]:
    """Connect the above."""
    app.connect("source-read", complete)
    app.connect("missing-reference", public_name)
    app.connect("build-finished", write_entry)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Look through the site that ``make docs`` built: no request to other hosts, every name documented.

``python tests/site_check.py site``; it ends at the first thing that does not hold.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import falsify_adapters

#: What a browser fetches by itself; links are followed by people.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=\"(?:https?:)?//"
    r"|<link\b(?![^>]*rel=\"(?:canonical|author|license)\")[^>]*\bhref=\"(?:https?:)?//"
    r"|(?:url\(|@import)\s*[\"']?(?:https?:)?//",
    re.IGNORECASE,
)


def main(site: Path) -> None:
    """Run all checks."""
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css", ".svg")]
    for path in files:
        found = FETCHED.search(path.read_text("utf-8"))
        if found:
            sys.exit(f"{path}: asks another host: {found[0]}")
    reference = (site / "docs" / "api.html").read_text("utf-8")
    for name in set(falsify_adapters.__all__) - {"__version__"}:
        if f'id="falsify_adapters.{name}"' not in reference:
            sys.exit(f"{name} is not in the reference")
    print(f"{len(files)} files ask no other host; every public name is documented")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

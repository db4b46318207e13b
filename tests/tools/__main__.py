"""Write the files of one tool anew."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

name, folder = sys.argv[1], Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
expected = import_module(f"tests.tools.write_{name}").write(folder)
(folder / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")

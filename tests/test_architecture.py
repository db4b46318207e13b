"""The shape of the package: who imports what, and what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import falsify_adapters

PACKAGE = Path(falsify_adapters.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Which modules may import a library, anywhere in them.
HOMES = {
    "click": ("cli/",),
    "ir_measures": ("measures.py",),
    "jinja2": ("report/",),
    "matplotlib": ("report/",),
    "bm25s": ("bm25_index.py",),
    "joblib": ("sweep/workers.py",),
    "distributed": ("sweep/workers.py",),
    "mcp": ("mcp_server/",),
}
#: Optional libraries, which nothing imports before it needs them.
LAZY = (
    *("beir", "mteb", "matplotlib", "jinja2", "pyarrow", "lz4", "cbor2", "ranx", "torch"),
    *("anyio", "dask", "distributed", "joblib", "jsonschema", "mcp"),
)


def imports(path: Path, *, top_level: bool = False) -> set[str]:
    """Return the top packages that a module imports, TYPE_CHECKING blocks aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_libraries_stay_in_their_modules(path: Path) -> None:
    name = path.relative_to(PACKAGE).as_posix()
    for library in imports(path) & HOMES.keys():
        assert name.startswith(HOMES[library]), f"{name} imports {library}"
    assert not imports(path, top_level=True) & set(LAZY)


def test_the_import_contracts_of_pyproject_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint], cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def loaded_by(code: str) -> set[str]:
    """Return the top packages that are loaded after `code` ran in a fresh interpreter."""
    code += "\nimport sys; print('|', *{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    return set(done.stdout.rsplit("|", 1)[1].split())


HEAVY = {"numpy", "pandas", "scipy", "rich", "ir_measures", "bm25s", "requests", "pooch"}


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_by("import falsify_adapters") & (HEAVY | {"click"})


@pytest.mark.parametrize("module", ["beir", "ir", "main", "mteb"])
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_loads_nothing_heavy(module: str, option: str) -> None:
    code = (
        f"from falsify_adapters.cli.{module} import main\n"
        f"try:\n    main(['{option}'], prog_name='x')\nexcept SystemExit as end:\n"
        "    assert not end.code"
    )
    assert not loaded_by(code) & HEAVY


def test_every_public_name_is_there_and_documented() -> None:
    for name in falsify_adapters.__all__:
        value = getattr(falsify_adapters, name)
        assert name.startswith("__") or value.__doc__, name
    assert sorted(falsify_adapters.__all__) == list(falsify_adapters.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        falsify_adapters.nonsense  # noqa: B018

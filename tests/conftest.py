"""What all tests share: where the real data is, and that its tests are not skipped silently."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

#: These need tools that are not installed here (see tests/tools).
collect_ignore_glob = ["tools/write_*.py"]

#: No test depends on how fast the machine is. The thorough profile is for once in a while:
#: ``pytest --hypothesis-profile=thorough``.
settings.register_profile("usual", max_examples=40, deadline=None)
settings.register_profile("thorough", max_examples=10_000, deadline=None)
settings.load_profile("usual")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def find_data_dir() -> Path | None:
    """Return the folder of real collections, or None."""
    candidates = [os.environ.get("FALSIFY_DATA_DIR"), SHARED / "data"]
    return next((Path(c).resolve() for c in candidates if c and Path(c).is_dir()), None)


@pytest.fixture(scope="session", autouse=True)
def irds_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where ir_datasets keeps data: not in the user's home. It asks once, when it is imported."""
    if "ir_datasets" not in sys.modules:
        os.environ["IR_DATASETS_HOME"] = str(tmp_path_factory.mktemp("irds-home"))
    return Path(os.environ["IR_DATASETS_HOME"])


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Real collections (NFCorpus, SciFact, TREC DL 2019), which are not part of the project."""
    found = find_data_dir()
    if found is None:
        pytest.skip("no real data: set FALSIFY_DATA_DIR to a folder that holds it")
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that needs real data, so that it can be selected."""
    for item in items:
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker("real_data")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # noqa: ARG001
    """Turn the skip of a real-data test into a failure where the data ought to be."""
    report = (yield).get_result()
    must_run = os.environ.get("CI") == "true" and SHARED.is_dir()
    if report.skipped and must_run and item.get_closest_marker("real_data"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped although {SHARED.name}/ is there"

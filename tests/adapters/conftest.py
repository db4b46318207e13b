"""Libraries that keep data in the user's home keep it in a folder of the tests instead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def irds_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where ir_datasets looks for data; it asks when it is imported, and ranx imports it."""
    if "IR_DATASETS_HOME" not in os.environ:
        os.environ["IR_DATASETS_HOME"] = str(tmp_path_factory.mktemp("irds-home"))
    return Path(os.environ["IR_DATASETS_HOME"])

"""Run every study: ``python -m tests.studies [--full] [--seed N]``."""

from __future__ import annotations

import sys

from tests.studies import (
    case_studies,
    coverage,
    dependence,
    error_rates,
    tau_auto,
    worked_example,
)
from tests.studies.tables import study

STUDIES = {
    "coverage": (coverage, "Do the intervals cover?"),
    "dependence": (dependence, "Do the intervals cover if queries hang together?"),
    "error_rates": (error_rates, "How often is the verdict wrong?"),
    "tau_auto": (tau_auto, "What --tau auto takes"),
    "worked_example": (worked_example, "The guide's worked example, re-made"),
    "case_studies": (case_studies, "The case studies on NFCorpus and SciFact, re-made"),
}

if __name__ == "__main__":
    for name, (module, title) in STUDIES.items():
        print(f"\n=== {title}", flush=True)
        study(name, title, module.WORDS, module.make, sys.argv[1:])

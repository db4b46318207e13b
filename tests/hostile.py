"""Names and ids that try to break out of a report, as a real evaluation."""

from __future__ import annotations

import numpy as np

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.notes import Note

SCRIPT = "<script>globalThis.hacked = 1</script>"
NAMES = (
    SCRIPT,
    '"><img src=x onerror="globalThis.hacked = 1"><b class="injected">',
    "'); globalThis.hacked = 1; //",
    "</title></style></script><b class='injected'>{{ 7 * 7 }}{% raw %}",
    "x" * 2000,
    "שלום עולם \u202e evil \u2066",
    r"\input{/etc/passwd} $x_1^2$ 100% & #1 ~ | `code` [a](b) **c**",
    "=cmd|' /C calc'!A0",
    "a\u2028b\u2029c\u0085d\x1b[31m",
)


def hostile_evaluation(system: str = SCRIPT, benchmark: str = NAMES[1]) -> Evaluation:
    """Return an evaluation in which every name and some ids are hostile."""
    rng = np.random.default_rng(0)
    queries = [f"{NAMES[i % len(NAMES)]} {i}" for i in range(45)]
    qrels = {query: {f"{NAMES[i % 3]} d{i % 30}": 1} for i, query in enumerate(queries)}
    # the first nine queries, one with each name, are the worst
    run = {
        query: {**(gold if i >= len(NAMES) else {}), f"{SCRIPT} {rng.integers(99)}": 0.5}
        for i, (query, gold) in enumerate(qrels.items())
    }
    return Evaluation.create(
        run,
        qrels,
        corpus_size=1000,
        system=system,
        benchmark=benchmark,
        split=NAMES[3],
        notes=[Note("W-EXCLUDED", " ".join(NAMES[:4]))],
        provenance={"run": {SCRIPT: NAMES[2], "name": NAMES[5]}},
    )

"""Write the table of docs/free-points.md: what each benchmark at hand gives away for free.

Run from the project's root: ``python tests/studies/free_points.py``. It reads the qrels of the
folder that ``FALSIFY_DATA_DIR`` names (or ``../shared/data``) and the bundled sample, and replaces
what stands between the two marks in the page. ``--check`` only says whether the page is current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from falsify_adapters import audit_benchmark, read_qrels  # noqa: E402
from falsify_adapters.adapters.beir import open_dataset  # noqa: E402
from falsify_adapters.audit import Audit, in_order  # noqa: E402
from tests.conftest import find_data_dir  # noqa: E402

PAGE = ROOT / "docs" / "free-points.md"
START, END = "<!-- table: made by tests/studies/free_points.py -->", "<!-- end of table -->"
MEASURE = "nDCG@10"
#: Qrels files by the name that the table gives them.
FILES = {
    "BRIGHT pony": "qrels/bright-pony.qrels",
    "CLIMATE-FEVER": "qrels/climate-fever.qrels",
    "TREC-COVID": "qrels/trec-covid.qrels",
    "NFCorpus": "qrels/nfcorpus.qrels",
    "SciFact": "qrels/scifact.qrels",
    "TREC DL 2019 passages": "dl19/qrels.trec",
}


def audits(data_dir: Path) -> Iterator[Audit]:
    for name, place in FILES.items():
        frame = read_qrels(data_dir / place).frame
        yield audit_benchmark(frame, MEASURE, name=name, held_out=True)
    sample = open_dataset("sample")
    yield audit_benchmark(sample.qrels, MEASURE, name="the bundled sample", held_out=True)


def table(rows: list[Audit]) -> str:
    head = ["benchmark", "queries", "ceiling", "held out", "E[B] at most", "E[D] at most"]
    head += ["relevant documents", "effective", "top document", "same gold set"]
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    for audit in rows:
        ceiling = audit.ceiling
        assert audit.held_out is not None
        cells = [
            audit.name,
            f"{ceiling.n_queries:,}",
            f"{ceiling.score:.4f}",
            f"{audit.held_out.score:.3f}",
            f"{ceiling.bounds['B'].value:.4f}",
            f"{ceiling.bounds['D'].value:.4f}",
            f"{ceiling.n_documents:,}",
            f"{ceiling.effective_documents:,.0f}",
            f"{ceiling.largest_popularity / ceiling.n_queries:.1%}",
            f"{audit.findings.same_gold_set:,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def page_with(new: str) -> str:
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{new}\n{END}{after}"


def main() -> int:
    data_dir = find_data_dir()
    if data_dir is None:
        print("no real data: set FALSIFY_DATA_DIR to a folder that holds it", file=sys.stderr)
        return 2
    page = page_with(table(in_order(audits(data_dir))))
    if "--check" in sys.argv[1:]:
        return 0 if page == PAGE.read_text(encoding="utf-8") else 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""BEIR: its folders, its loaders' objects and its results dict become an :class:`Evaluation`.

Nothing here imports beir. Two of its habits are kept on purpose, so that scores agree: documents
whose id equals the query's are removed, and msmarco is scored on ``dev``. Two are not: the
caller's dict is left as it is, and a judged query that the run misses counts 0 in ``score``
(BEIR's own mean over the answered queries is reported beside it as ``score_answered``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from falsify_adapters import baselines
from falsify_adapters import download as downloads
from falsify_adapters.adapters.beir_corpus import Corpus, FolderCorpus, MemoryCorpus
from falsify_adapters.adapters.beir_places import Download, Place, content_of, locate
from falsify_adapters.adapters.files import read_run_beside
from falsify_adapters.bm25_index import Document
from falsify_adapters.data.table import find_entry
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_qrels, categories, codes
from falsify_adapters.notes import Note, counted, plural, some
from falsify_adapters.readers import read_qrels
from falsify_adapters.readers.source import content_sha256

if TYPE_CHECKING:
    from falsify_adapters.results import GateConfig, GateReport

#: Settings of the BM25 run that is computed when no run is given.
BM25_SETTINGS = {"k": 100, "k1": 0.9, "b": 0.4}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A benchmark: qrels at hand, document ids and texts read when they are asked for.

    Parameters
    ----------
    name : str or None
        BEIR's name, or the folder's.
    split : str or None
        Which qrels.
    qrels : DataFrame
        The common qrels frame.
    corpus : Corpus
        Where documents and queries come from.
    subset : str or None
        The forum, for cqadupstack.
    notes : tuple of Note
        Warnings from reading the qrels.
    provenance : mapping
        Where the qrels came from.
    """

    name: str | None
    split: str | None
    qrels: pd.DataFrame = field(repr=False)
    corpus: Corpus = field(repr=False)
    subset: str | None = None
    notes: tuple[Note, ...] = field(default=(), repr=False)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def corpus_ids(self) -> frozenset[str] | None:
        """The documents' ids, or None if there is no corpus. Texts are not held."""
        if not self.corpus.has_documents():
            return None
        n_documents = 0

        def counted() -> Iterator[str]:
            nonlocal n_documents
            for doc_id in self.corpus.doc_ids():
                n_documents += 1
                yield doc_id

        ids = frozenset(counted())  # built at once: millions of ids are not copied
        if not ids:
            raise InputError(f"the corpus of {self.title} is empty")
        if len(ids) < n_documents:
            raise InputError(
                f"the corpus of {self.title} holds a document id twice",
                found=repr(_first_repeated(self.corpus.doc_ids())),
                hint="one document per id",
            )
        return ids

    @property
    def corpus_size(self) -> int | None:
        """Number of documents, or None if there is no corpus."""
        return None if self.corpus_ids is None else len(self.corpus_ids)

    @property
    def title(self) -> str:
        """Name and subset, for messages."""
        return "/".join(part for part in (self.name or "the data set", self.subset) if part)

    def documents(self) -> Iterable[Document]:
        """Return the documents as a stream."""
        return self.corpus.documents()

    def queries(self) -> dict[str, str]:
        """Return the texts of the judged queries by id."""
        judged = frozenset(categories(self.qrels["query_id"]))
        found = {key: text for key, text in self.corpus.queries() if key in judged}
        if not found:
            raise InputError(
                f"no judged query of {self.title} has a text",
                found=f"{counted(len(judged), 'judged query')} ({some(sorted(judged))})",
                hint="do queries and qrels belong together?",
            )
        return found

    def queries_path(self) -> Path:
        """Return the file that holds the queries.

        Raises
        ------
        InputError
            If the data set is no folder with one.
        """
        if not isinstance(self.corpus, FolderCorpus):
            raise InputError(f"the queries of {self.title} are in no file")
        return self.corpus.queries_path()

    def text_files(self, *names: str) -> dict[str, dict[str, str]]:
        """Return name and SHA-256 (after decompression) of the files behind texts.

        Parameters
        ----------
        *names : {"corpus", "queries"}
            Which; one that has no file is left out.
        """
        return {name: file for name, file in self._text_files.items() if name in names}

    @cached_property
    def _text_files(self) -> dict[str, dict[str, str]]:
        return {
            name: {"name": path.name, "sha256": content_sha256(path)}
            for name, path in self.corpus.files().items()
        }

    def bm25(
        self,
        *,
        k: int = 100,
        k1: float = 0.9,
        b: float = 0.4,
        cache_dir: str | Path | None = None,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Rank the documents by BM25, as :func:`falsify_adapters.baselines.bm25` does.

        Parameters
        ----------
        k, k1, b
            As there.
        cache_dir : path, optional
            Where indexes are kept; by default in the user's cache.
        progress : bool, optional
            Draw progress bars; by default only on a terminal.
        """
        return baselines.bm25(
            self.documents(),
            self.queries(),
            k=k,
            k1=k1,
            b=b,
            cache_dir=downloads.cache_folder() / "bm25" if cache_dir is None else cache_dir,
            corpus_fingerprint=self.corpus.fingerprint(),
            progress=progress,
        )

    def evaluate(
        self,
        run: Any = None,
        *,
        system: str | None = None,
        corpus_size: int | None = None,
        keep_self: bool = False,
        top_k: int | None = None,
        exclude: pd.DataFrame | None = None,
        progress: bool | None = None,
    ) -> Evaluation:
        """Join a run to this benchmark.

        Parameters
        ----------
        run : path, DataFrame, mapping, or iterable of namedtuples, optional
            A run file, a run frame, or the results dict of ``EvaluateRetrieval.retrieve``, left
            unchanged. Without it BM25 is computed.
        system : str, optional
            The system's name; by default the file's without its ending (the folder's, if the
            file is named after the forum), or ``bm25``.
        corpus_size : int, optional
            Number of documents. The corpus is then not read for its ids, and documents that it
            lacks are not noticed.
        keep_self : bool
            Keep documents whose id equals the query's, which BEIR removes.
        top_k : int, optional
            Cut every ranking to this depth.
        exclude : DataFrame, optional
            Documents to leave out of the run, per query: ``query_id, doc_id``.
        progress : bool, optional
            Draw progress bars; by default only on a terminal.

        Raises
        ------
        InputError
            If the run cannot be read, shares no query with the qrels, or returns documents that
            the corpus does not hold.
        """
        notes = list(self.notes)
        provenance = dict(self.provenance)
        if run is None:
            system = system or "bm25"
            provenance["run"] = {"computed": "bm25", **BM25_SETTINGS}
            provenance |= self.text_files("corpus", "queries")
            depth = int(BM25_SETTINGS["k"])
            # one more, for the same reason as below
            run = self.bm25(k=depth if keep_self else depth + 1, progress=progress)
            top_k = depth if top_k is None else min(top_k, depth)
        elif isinstance(run, (str, Path)):
            system = system or self._system_of(Path(run))
            # read one more than is kept, for the query's own may have to go; what is excluded
            # may lie anywhere
            cut = None if top_k is None or exclude is not None else top_k + 1
            file = read_run_beside(run, self.qrels, depth=cut, notes=notes)
            run, provenance["run"] = file.frame, dict(file.provenance)
        if corpus_size is None:
            provenance |= self.text_files("corpus")
        return _evaluation(
            run,
            self.qrels,
            corpus_size=corpus_size,
            corpus_ids=self.corpus_ids if corpus_size is None else None,
            keep_self=keep_self,
            top_k=top_k,
            exclude=exclude,
            notes=notes,
            system=system or "run",
            benchmark=self.name,
            split=self.split,
            subset=self.subset,
            provenance=provenance,
        )

    def _system_of(self, path: Path) -> str:
        """Return the file's name without its ending; the folder's, if the file's is the forum."""
        name = _stem(path)
        return path.resolve().parent.name if name == self.subset else name


def load_beir(
    source: Any,
    run: Any = None,
    *,
    split: str | None = None,
    system: str | None = None,
    corpus_size: int | None = None,
    keep_self: bool = False,
    top_k: int | None = None,
    data_dir: str | Path | None = None,
    base_url: str | None = None,
    offline: bool = False,
    verify: bool = True,
    progress: bool | None = None,
) -> Evaluation:
    """Join a BEIR benchmark and a run.

    Parameters
    ----------
    source : path, str, tuple or Dataset
        A folder in BEIR's layout; a data set's name; the ``(corpus, queries, qrels)`` that
        ``GenericDataLoader`` or ``HFDataLoader`` return; or what :func:`open_dataset` returned.
    run : path, DataFrame, mapping, or iterable of namedtuples, optional
        A run file (TREC run, or results dict as JSON), a run frame, or the results dict of
        ``EvaluateRetrieval.retrieve``, left unchanged. Without it BM25 is computed.
    split : str, optional
        By default ``test``, but ``dev`` for msmarco.
    system, corpus_size, keep_self, top_k, progress
        As for :meth:`Dataset.evaluate`.
    data_dir, base_url, offline, verify
        As for :func:`open_dataset`.

    Returns
    -------
    Evaluation
        What ``run_gate`` grades.

    Examples
    --------
    >>> corpus = {"d1": {"title": "", "text": "a cat"}, "d2": {"title": "", "text": "a dog"}}
    >>> queries, qrels = {"q1": "cats"}, {"q1": {"d1": 1}}
    >>> evaluation = load_beir((corpus, queries, qrels), {"q1": {"d1": 0.9, "d2": 0.2}})
    >>> evaluation.corpus_size, evaluation.corpus_size_source, len(evaluation.run)
    (2, 'counted', 2)
    """
    dataset = open_dataset(
        source,
        split=split,
        data_dir=data_dir,
        base_url=base_url,
        offline=offline,
        verify=verify,
        progress=progress,
    )
    return dataset.evaluate(
        run,
        system=system,
        corpus_size=corpus_size,
        keep_self=keep_self,
        top_k=top_k,
        progress=progress,
    )


def open_dataset(source: Any, **options: Any) -> Dataset:
    """Open one benchmark; takes what :func:`open_datasets` takes.

    Raises
    ------
    UsageError
        If the source has several parts, as cqadupstack has forums: name one, as in
        ``cqadupstack/android``, or call :func:`open_datasets`.
    """
    datasets = open_datasets(source, **options)
    if len(datasets) > 1:
        parts = [dataset.title for dataset in datasets]
        raise UsageError(
            f"{datasets[0].name} is {len(datasets)} benchmarks, each scored by itself",
            found=some(parts, 12),
            hint=f"name one of them, such as {parts[0]}, or use open_datasets",
        )
    return datasets[0]


def open_datasets(
    source: Any,
    *,
    split: str | None = None,
    data_dir: str | Path | None = None,
    download: bool = True,
    base_url: str | None = None,
    offline: bool = False,
    verify: bool = True,
    progress: bool | None = None,
) -> list[Dataset]:
    """Open a benchmark, or all parts of one (cqadupstack's forums), reading the qrels only.

    A folder is taken as it is. A name is looked for in `data_dir`, then in the folder that
    ``FALSIFY_DATA_DIR`` names, then in the user's cache; what is in none of them is downloaded
    into the first of them. ``sample`` is the collection that comes with this package.

    Parameters
    ----------
    source : path, str, tuple or Dataset
        As for :func:`load_beir`.
    split : str, optional
        By default ``test``, but ``dev`` for msmarco.
    data_dir : path, optional
        Folder of data sets.
    download : bool
        Download what is not there. False, like `offline`, never uses the network.
    base_url : str, optional
        A mirror of BEIR's server; by default ``FALSIFY_BEIR_URL``, else the server itself.
    offline : bool
        Never use the network.
    verify : bool
        Refuse a download whose md5 is not the published one.
    progress : bool, optional
        Draw a progress bar; by default only on a terminal.

    Returns
    -------
    list of Dataset
        One for each part, sorted by its name. Parts are never pooled: query ids may repeat.

    Raises
    ------
    UsageError
        If nothing has that name.
    InputError
        If the data set is not there and cannot be downloaded, or has no such split.
    """
    if isinstance(source, Dataset):
        if split not in (None, source.split):
            raise UsageError(f"{source.title} is open for another split", found=str(source.split))
        return [source]
    if not isinstance(source, (str, Path)):
        return [_from_loader(source, split)]
    options = Download(download and not offline, base_url, verify, progress)
    return [_from_folder(place, split) for place in locate(source, data_dir, options)]


def gate_beir(
    results: Any,
    qrels: Any,
    *,
    corpus_size: int | None = None,
    measure: Any = "nDCG@10",
    config: GateConfig | None = None,
    keep_self: bool = False,
    top_k: int | None = None,
    system: str = "run",
    benchmark: str | None = None,
    split: str | None = None,
) -> GateReport:
    """Grade the results of BEIR's retriever: the one line after ``retriever.evaluate(...)``.

    Parameters
    ----------
    results : mapping
        ``{query_id: {doc_id: score}}``, as ``EvaluateRetrieval.retrieve`` returns it. Left
        unchanged.
    qrels : mapping
        ``{query_id: {doc_id: relevance}}``, as BEIR's loaders return it.
    corpus_size : int, optional
        ``len(corpus)``. Without it the pooled documents are counted, which makes null C stronger
        than it is.
    measure : ir-measures measure or str
        What to grade: BEIR's ``NDCG@10`` is ``nDCG@10``, ``Recall@100`` is ``R@100``, ``MAP@100``
        is ``AP@100``.
    config : GateConfig, optional
        Settings of the gate.
    keep_self : bool
        Keep documents whose id equals the query's, as ``ignore_identical_ids=False`` does.
    top_k : int, optional
        Cut every ranking to this depth.
    system, benchmark, split : str, optional
        Names for the report.

    Returns
    -------
    GateReport
        Its ``verdict`` is PASS, FAIL or UNDER-NS.
    """
    from falsify_adapters.gate import run_gate
    from falsify_adapters.results import GateConfig

    evaluation = _evaluation(
        results,
        qrels,
        corpus_size=corpus_size,
        keep_self=keep_self,
        top_k=top_k,
        system=system,
        benchmark=benchmark,
        split=split,
    )
    return run_gate(evaluation, measure, GateConfig() if config is None else config)


def run_of(part: Dataset, run: str | Path) -> Path:
    """Return the run file for one part of a benchmark: the file of that name in a folder of runs.

    Parameters
    ----------
    part : Dataset
        A forum of cqadupstack.
    run : path
        A folder with one run for each part, such as ``android.trec``; a file is returned as it is.

    Raises
    ------
    InputError
        If the folder holds no run of that name, or several.
    """
    path = Path(run)
    if not path.is_dir():
        return path
    matches = sorted(
        file for file in path.iterdir() if file.is_file() and _stem(file) == part.subset
    )
    if len(matches) != 1:
        raise InputError(
            f"{path.name} should hold one run for {part.title}",
            found=", ".join(file.name for file in matches) or content_of(path),
            hint=f"name it {part.subset}.trec",
        )
    return matches[0]


def _evaluation(run: Any, qrels: Any, **options: Any) -> Evaluation:
    """Create the evaluation and say where BEIR's order of documents differs from ours."""
    evaluation = Evaluation.create(run, qrels, **options)
    frame = evaluation.run
    query, score = codes(frame["query_id"]), frame["score"].to_numpy()
    single = score.astype(np.float32)
    # in a block of scores that are equal in single precision, BEIR goes by doc_id, descending
    swapped = (query[1:] == query[:-1]) & (single[1:] == single[:-1])
    swapped &= np.diff(codes(frame["doc_id"])) > 0
    n_queries = len(np.unique(query[1:][swapped]))
    if not n_queries:
        return evaluation
    note = Note(
        "W-SCORE-PRECISION",
        f"{counted(n_queries, 'query')} {plural(n_queries, 'has', 'have')} scores that differ"
        " beyond single precision only: BEIR, which"
        " compares in single precision, takes them for ties and may print another score",
    )
    return replace(evaluation, notes=(*evaluation.notes, note))


def _from_folder(place: Place, split: str | None) -> Dataset:
    entry = find_entry(place.name)
    split = split or (entry.default_split if entry else "test")
    path = place.folder / "qrels" / f"{split}.tsv"
    if not path.is_file():
        splits = sorted(file.stem for file in path.parent.glob("*.tsv"))
        raise InputError(
            f"{place.folder.name} has no qrels for the split {split}",
            found=f"splits {', '.join(splits)}" if splits else content_of(path.parent),
            hint=f"--split {splits[0]}" if splits else "BEIR's layout is qrels/SPLIT.tsv",
        )
    notes: list[Note] = []
    file = read_qrels(path, notes=notes)
    return Dataset(
        name=place.name,
        split=split,
        qrels=file.frame,
        corpus=FolderCorpus(place.folder),
        subset=place.subset,
        notes=tuple(notes),
        provenance={"qrels": dict(file.provenance)},
    )


def _from_loader(source: Any, split: str | None) -> Dataset:
    if hasattr(source, "corpus") and hasattr(source, "qrels"):  # a loader that has loaded
        source = (source.corpus, getattr(source, "queries", None), source.qrels)
    if not isinstance(source, (tuple, list)) or len(source) != 3:
        raise InputError(
            "the benchmark has a form that is not understood",
            found=type(source).__name__,
            hint="give a folder, a name, or the (corpus, queries, qrels) of BEIR's loaders",
        )
    corpus, queries, qrels = source
    notes: list[Note] = []
    return Dataset(
        name=None,
        split=split,
        qrels=as_qrels(_qrels_rows(qrels), notes=notes),
        corpus=MemoryCorpus(corpus, queries),
        notes=tuple(notes),
    )


def _first_repeated(doc_ids: Iterable[str]) -> str:
    seen: set[str] = set()
    for doc_id in doc_ids:
        if doc_id in seen:
            break
        seen.add(doc_id)
    return doc_id


def _qrels_rows(qrels: Any) -> Any:
    """Turn the rows of a Hugging Face data set, named as in BEIR's files, into a frame."""
    names = {"query-id": "query_id", "corpus-id": "doc_id", "score": "relevance"}
    columns = getattr(qrels, "column_names", None)
    if columns is None or not set(names) <= set(columns):
        return qrels
    rows = list(qrels)
    return pd.DataFrame({new: [row[old] for row in rows] for old, new in names.items()})


def _stem(path: Path) -> str:
    """Return the file's name without its ending, and without ``.gz``."""
    name = path.name.removesuffix(".gz")
    return Path(name).stem

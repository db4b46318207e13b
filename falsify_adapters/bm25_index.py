"""A BM25 index over a stream of documents, kept on disk between runs.

bm25s tokenises and scores. What is added here: texts are read one at a time and never held, words
are weighed in chunks, which takes less memory, ties are broken by our ranking rule, and a finished
index is stored so that another process can neither see half of it nor use a damaged one.

What it costs in memory is measured by ``tests/benchmarks/bm25_memory.py`` and stated in
:func:`falsify_adapters.baselines.bm25`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from falsify_adapters.errors import InputError
from falsify_adapters.notes import counted
from falsify_adapters.progress import importing, track

#: Part of every cache key: raise it when the stored form or the tokenisation changes.
_FORM = 2
_MANIFEST = "manifest.json"


class Document(NamedTuple):
    """One document of a corpus."""

    doc_id: str
    title: str
    text: str

    @property
    def content(self) -> str:
        """Title and text as BM25 reads them."""
        return f"{self.title} {self.text}"


class BM25Index:
    """Documents ready to be searched; made by :meth:`build` or :meth:`load`."""

    def __init__(self, retriever: Any, doc_ids: _DocIds) -> None:
        self._retriever = retriever
        self._doc_ids = doc_ids
        self._tokenizer = _tokenizer()
        self._tokenizer.stem_to_sid = retriever.vocab_dict

    @classmethod
    def build(
        cls, documents: Iterable[Document], *, k1: float, b: float, progress: bool | None = None
    ) -> BM25Index:
        """Read the documents once and weigh their words.

        Raises
        ------
        InputError
            If there is no document, or none has a word.
        """
        tokenizer = _tokenizer()
        doc_ids, tokens = _DocIds(), _TokenIds()

        def texts() -> Iterator[str]:
            for document in track(documents, "reading documents", show=progress):
                doc_ids.append(document.doc_id)
                yield document.content

        for ids in tokenizer.streaming_tokenize(texts(), update_vocab=True, allow_empty=False):
            tokens.append(ids)
        vocabulary = tokenizer.stem_to_sid
        if not vocabulary:
            raise InputError(
                "BM25 has nothing to index",
                found=f"{counted(len(doc_ids), 'document')} without any word",
            )
        del tokenizer  # its tables of unstemmed words are as large as the index of a small corpus
        retriever = _retriever(k1, b, progress)
        retriever.index(
            _Tokenized(tokens, vocabulary), create_empty_token=False, show_progress=False
        )
        return cls(retriever, doc_ids)

    def search(self, query: str, k: int) -> list[tuple[float, str]]:
        """Return the best `k` documents as (score, doc_id), by our ranking rule.

        Documents that share no word with the query are not returned.
        """
        (tokens,) = self._tokenizer.streaming_tokenize(
            [query], update_vocab=False, allow_empty=False
        )
        if not tokens:
            return []
        scores: npt.NDArray[np.float32] = self._retriever.get_scores_from_ids(tokens)
        best = np.flatnonzero(scores > 0)
        if best.size > k:
            # every document tied with the last place stays, for the ids to decide
            last_place = np.partition(scores[best], -k)[-k]
            best = best[scores[best] >= last_place]
        ranked = sorted(((float(scores[i]), self._doc_ids[int(i)]) for i in best), reverse=True)
        return ranked[:k]

    def save(self, folder: Path) -> None:
        """Store the index as `folder`, whole or not at all; an index that is there already wins."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=".bm25-", dir=folder.parent, ignore_cleanup_errors=True
        ) as scratch:
            draft = Path(scratch) / "index"
            self._retriever.save(draft, show_progress=False)
            self._doc_ids.save(draft)
            sums = {path.name: _checksum(path) for path in sorted(draft.iterdir())}
            (draft / _MANIFEST).write_text(json.dumps(sums, indent=1), "utf-8")
            try:
                draft.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise

    @classmethod
    def load(cls, folder: Path) -> BM25Index | None:
        """Open a stored index (memory-mapped); None if there is none or it is damaged."""
        with importing():
            import bm25s

        try:
            sums = json.loads((folder / _MANIFEST).read_text("utf-8"))
            if any(_checksum(folder / name) != checksum for name, checksum in sums.items()):
                return None
            retriever = bm25s.BM25.load(folder, mmap=True)
            return cls(retriever, _DocIds.load(folder))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def cached_index(
    documents: Iterable[Document],
    *,
    k1: float,
    b: float,
    cache_dir: Path,
    fingerprint: str,
    progress: bool | None = None,
) -> BM25Index:
    """Return the stored index of these documents, building and storing it if need be.

    Parameters
    ----------
    documents : iterable of Document
        Read only if no usable index is stored.
    k1, b : float
        BM25's parameters.
    cache_dir : Path
        Where indexes are kept, one folder for each corpus and settings.
    fingerprint : str
        What identifies the documents: other documents need another fingerprint.
    progress : bool, optional
        Draw progress bars; by default only on a terminal.
    """
    folder = cache_dir / f"bm25-{_cache_key(fingerprint, k1, b)}"
    index = BM25Index.load(folder)
    if index is not None:
        return index
    if folder.exists():
        _discard(folder)
    index = BM25Index.build(documents, k1=k1, b=b, progress=progress)
    # a full disk or a folder that cannot be written costs time at the next run, not this result
    with contextlib.suppress(OSError):
        index.save(folder)
    return index


def fingerprint(documents: Iterable[Document]) -> str:
    """Return a checksum over ids and contents, in order."""
    digest = hashlib.blake2b(digest_size=16)
    for document in documents:
        for part in document:
            raw = part.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
    return digest.hexdigest()


class _DocIds:
    """Document ids in one block of UTF-8: a tenth of the memory of Python strings."""

    def __init__(
        self,
        text: npt.NDArray[np.uint8] | None = None,
        ends: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._text: Any = bytearray() if text is None else text
        self._ends: Any = array("q") if ends is None else ends

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, position: int) -> str:
        start = int(self._ends[position - 1]) if position else 0
        return bytes(self._text[start : int(self._ends[position])]).decode()

    def append(self, doc_id: str) -> None:
        self._text += doc_id.encode()
        self._ends.append(len(self._text))

    def save(self, folder: Path) -> None:
        np.save(folder / "doc_ids.text.npy", np.frombuffer(self._text, dtype=np.uint8))
        np.save(folder / "doc_ids.ends.npy", np.frombuffer(self._ends, dtype=np.int64))

    @classmethod
    def load(cls, folder: Path) -> _DocIds:
        return cls(
            np.load(folder / "doc_ids.text.npy", mmap_mode="r"),
            np.load(folder / "doc_ids.ends.npy", mmap_mode="r"),
        )


class _TokenIds:
    """Every document's word ids, one after the other in a flat array."""

    #: Words that are worked on at a time.
    CHUNK = 1 << 21

    def __init__(self) -> None:
        self._flat = array("i")
        self._ends = array("q", [0])

    def append(self, ids: list[int]) -> None:
        self._flat.extend(ids)
        self._ends.append(len(self._flat))

    def lengths(self) -> npt.NDArray[np.int64]:
        """Return the number of words of each document."""
        ends = np.frombuffer(self._ends, dtype=np.int64)
        return ends[1:] - ends[:-1]

    def postings(self, label: str, show: bool | None) -> Iterator[_Postings]:
        """Yield which word stands how often in which document, for a chunk of documents each.

        Sorted by word, then by document; the chunks go through the documents in order.
        """
        flat = np.frombuffer(self._flat, dtype=np.intc)
        ends = np.frombuffer(self._ends, dtype=np.int64)
        cuts = np.searchsorted(ends, np.arange(self.CHUNK, len(flat), self.CHUNK))
        chunks = list(pairwise(np.unique([0, *cuts, len(ends) - 1]).tolist()))
        for first, last in track(chunks, label, show=show):
            n_documents = last - first
            document = np.repeat(np.arange(n_documents), np.diff(ends[first : last + 1]))
            key = flat[ends[first] : ends[last]].astype(np.int64) * n_documents + document
            key, tf = np.unique(key, return_counts=True)
            yield _Postings(key // n_documents, key % n_documents + first, tf)


class _Postings(NamedTuple):
    word: npt.NDArray[np.int64]
    document: npt.NDArray[np.int64]
    tf: npt.NDArray[np.int64]


class _Tokenized(NamedTuple):
    """The form in which bm25s takes tokenised documents."""

    ids: _TokenIds
    vocab: Mapping[str, int]


def _retriever(k1: float, b: float, progress: bool | None) -> Any:
    """Return a bm25s retriever that builds its index in chunks.

    bm25s lets this step be overridden. Its own loops over all documents in Python, and needs 10 GB
    for FEVER where this needs 6.
    """
    with importing():
        import bm25s

    class Retriever(bm25s.BM25):  # type: ignore[misc]
        nonoccurrence_array = None  # the Lucene variant gives absent words no weight

        def build_index_from_ids(
            self, unique_token_ids: list[int], corpus_token_ids: _TokenIds, **_: Any
        ) -> dict[str, Any]:
            return _weigh(corpus_token_ids, len(unique_token_ids), k1, b, progress)

    return Retriever(k1=k1, b=b)


def _weigh(
    tokens: _TokenIds, n_words: int, k1: float, b: float, progress: bool | None
) -> dict[str, Any]:
    """Weigh every word of every document, word by word: the columns of a sparse matrix."""
    lengths = tokens.lengths()
    n_documents = np.zeros(n_words, dtype=np.int64)
    for postings in tokens.postings("counting words", progress):
        n_documents += np.bincount(postings.word, minlength=n_words)
    idf = np.log1p((len(lengths) - n_documents + 0.5) / (n_documents + 0.5))
    saturation = k1 * (1 - b + b * lengths / lengths.mean())
    starts = np.concatenate([[0], np.cumsum(n_documents)])
    weights = np.empty(starts[-1], dtype=np.float32)
    documents = np.empty(starts[-1], dtype=np.int32)
    free = starts[:-1].copy()  # where each word's next document goes
    for word, document, tf in tokens.postings("weighing words", progress):
        n_here = np.bincount(word, minlength=n_words)
        within = np.arange(len(word)) - (np.cumsum(n_here) - n_here)[word]
        place = free[word] + within
        weights[place] = idf[word] * tf / (tf + saturation[document])
        documents[place] = document
        free += n_here
    return {
        "data": weights,
        "indices": documents,
        "indptr": starts,
        "num_docs": len(lengths),
    }


def _tokenizer() -> Any:
    with importing():
        from bm25s.tokenization import Tokenizer

    # named by its module: snowballstemmer.stemmer() gives another implementation, with other
    # versions of the algorithm, where PyStemmer happens to be installed
    from snowballstemmer.english_stemmer import EnglishStemmer

    return Tokenizer(stopwords="english", stemmer=EnglishStemmer().stemWord)


def _cache_key(fingerprint: str, k1: float, b: float) -> str:
    settings = {
        "form": _FORM,
        "documents": fingerprint,
        "k1": float(k1),
        "b": float(b),
        "bm25s": version("bm25s"),
        "snowballstemmer": version("snowballstemmer"),
    }
    text = json.dumps(settings, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _discard(folder: Path) -> None:
    """Remove a damaged index; moved away first, so that nobody sees it half removed."""
    with tempfile.TemporaryDirectory(
        prefix=".bm25-", dir=folder.parent, ignore_cleanup_errors=True
    ) as scratch:
        try:
            folder.replace(Path(scratch) / "damaged")
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)

"""From a path, standard input or an open file to text: compression, encoding, whole lines.

Everything streams, so that neither a FIFO nor a file that expands a thousandfold needs more
memory than a few chunks.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from falsify_adapters.errors import InputError, MissingExtraError, UsageError

Source = str | Path | BinaryIO

#: Bytes of decoded text that the format is guessed from.
HEAD = 1 << 16
#: Bytes of text that are parsed at a time.
CHUNK = 1 << 22
#: No line of a run or of qrels is longer, and no JSON line of predictions.
LONGEST_LINE = 1 << 26
#: JSON and parquet are held in memory as a whole; larger files belong in a TREC run.
LARGEST_WHOLE = 1 << 30
#: Rankings shrink 5- to 30-fold. What expands more than this is no ranking.
LARGEST_RATIO = 200
RATIO_FREE = 1 << 26

_NEVER = (
    "pickles can run code and are never loaded: where it was made, write"
    " {query_id: {doc_id: score}} with json.dump"
)
#: First bytes of what people hand over by mistake, with what to do.
_FOREIGN = {
    b"\xfd7zXZ\x00": ("an xz file", "unpack it with unxz"),
    b"\x28\xb5\x2f\xfd": ("a zstd file", "unpack it with unzstd"),
    b"PK\x03\x04": (
        "a zip archive (or a spreadsheet, or what torch.save or numpy.savez wrote)",
        "unpack it, save the sheet as csv, or save the run with its ids as JSON",
    ),
    **dict.fromkeys(
        (
            *(b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
            # the first two protocols are text, or nearly
            *(b"(dp", b"(lp", b"(ip", b"}q\x00", b"]q\x00", b"(dq\x00", b"ccopy_reg\n"),
        ),
        ("a pickle", _NEVER),
    ),
    b"\x89HDF": ("an HDF5 file", "export the table as csv or Parquet"),
    b"\x93NUMPY": ("a numpy array", "save the run with its ids, as TREC or JSON"),
    b"SQLite format 3": ("an SQLite data base", "export the table as csv"),
    b"version https://git-lfs": ("a Git LFS pointer, not the file itself", "run git lfs pull"),
    b"<!DOCTYPE": ("an HTML page", "was the download refused, or a log-in needed?"),
    b"<!doctype": ("an HTML page", "was the download refused, or a log-in needed?"),
    b"<html": ("an HTML page", "was the download refused, or a log-in needed?"),
}
#: The first two bytes of zlib files, by how hard they are packed.
_ZLIB = (b"x\x01", b"x^", b"x\x9c", b"x\xda")
# the longer mark first: UTF-32 little endian begins like UTF-16
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

#: Bytes by which compression and encoding are known.
MAGIC = 16


class Content:
    """An opened source: its head for guessing, then its lines or all of it, once.

    Attributes
    ----------
    label : str
        How errors call the source: the path as it was given.
    name : str
        How reports call it: the base name.
    compression : {"gzip", "lz4"} or None
    encoding : {"utf-8", "utf-8-sig", "utf-16", "utf-32", "binary"}
        "binary" is parquet.
    head : bytes
        The first 64 KiB of text as UTF-8 (or of the parquet file).
    whole : bool
        Whether `head` is all there is.
    """

    def __init__(self, label: str, stream: io.BufferedReader) -> None:
        self.label = label
        self.name = Path(label).name
        self._hash = hashlib.sha256()
        start = stream.peek(MAGIC)
        self.compression = _compression(start)
        self._raw = cast(_Raw, stream.raw)
        plain = _decompressed(stream, self.compression, label)
        blocks = self._blocks(plain)
        first = next(blocks, b"")
        while 0 < len(first) < MAGIC:  # what is unpacked may come in small pieces too
            more = next(blocks, b"")
            if not more:
                break
            first += more
        self._refuse_foreign(first)
        self.encoding = _encoding(first)
        self._text = self._decoded(first, blocks)
        parts: list[bytes] = []
        size = 0
        for block in self._text:
            parts.append(block)
            size += len(block)
            if size >= HEAD:
                break
        self._pending = b"".join(parts)
        self.head = self._pending[:HEAD]
        self.whole = size < HEAD

    @property
    def sha256(self) -> str:
        """Hex digest of the content after decompression, once it has been read to its end."""
        return self._hash.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        r"""Yield pieces of whole lines that end in ``\n``; Windows line ends become that too."""
        pieces, size = [self._pending], len(self._pending)
        self._pending = b""
        for block in self._text:
            pieces.append(block)
            size += len(block)
            if size < CHUNK or b"\n" not in block:
                if size > LONGEST_LINE:
                    raise InputError(
                        f"{self.label} has a line of more than {LONGEST_LINE >> 20} MiB",
                        hint="is this a run or qrels file at all?",
                    )
                continue
            data = b"".join(pieces)
            cut = data.rfind(b"\n") + 1
            yield data[:cut].replace(b"\r\n", b"\n")
            pieces, size = [data[cut:]], len(data) - cut
        rest = b"".join(pieces).replace(b"\r\n", b"\n")
        if rest:
            yield rest if rest.endswith(b"\n") else rest.removesuffix(b"\r") + b"\n"

    def everything(self) -> bytes:
        """Return the content as a whole."""
        pieces, size = [self._pending], len(self._pending)
        self._pending = b""
        for block in self._text:
            pieces.append(block)
            size += len(block)
            if size > LARGEST_WHOLE:
                raise InputError(
                    f"{self.label} is too large to be read as a whole"
                    f" (limit {LARGEST_WHOLE >> 30} GiB)",
                    hint="write it as a TREC run or as JSON lines, which are read in pieces",
                )
        return b"".join(pieces)

    def _blocks(self, plain: BinaryIO) -> Iterator[bytes]:
        """Yield the decompressed bytes; errors of the medium become refusals."""
        total = 0
        while True:
            try:
                block = plain.read(1 << 20)
                if total == 0 and self.compression == _compression(block) == "lz4":
                    plain = self._from_ranx(block, plain)
                    block = plain.read(1 << 20)
            except EOFError:
                raise InputError(
                    f"{self.label} ends in the middle of its {self.compression} data",
                    found=f"{self._raw.position:,} bytes and no end",
                    hint="the file was cut: copy or write it again",
                ) from None
            except (OSError, RuntimeError, ValueError, zlib.error) as error:
                what = "cannot be unpacked" if self.compression else "cannot be read"
                raise InputError(f"{self.label} {what}", found=str(error)) from None
            if not block:
                return
            if isinstance(block, str):
                raise UsageError(
                    f"{self.label} is open as text", hint="open it in binary mode, with 'rb'"
                )
            total += len(block)
            self._hash.update(block)
            if self.compression:
                _check_ratio(total, self._raw.position, self.label)
            yield block

    def _rest_of(self, block: bytes, plain: BinaryIO) -> bytes:
        """Return the inner one of two compressed files."""
        parts, total = [block], len(block)
        while more := plain.read(1 << 20):
            total += len(more)
            _check_ratio(total, self._raw.position, self.label)
            parts.append(more)
        return b"".join(parts)

    def _from_ranx(self, block: bytes, plain: BinaryIO) -> BinaryIO:
        inner = self._rest_of(block, plain)
        most = min(LARGEST_WHOLE, RATIO_FREE + LARGEST_RATIO * self._raw.position)
        return _from_ranx(inner, self.label, most)

    def _refuse_foreign(self, start: bytes) -> None:
        for magic, (what, hint) in _FOREIGN.items():
            if start.startswith(magic):
                raise InputError(f"{self.label} is {what}", hint=hint)
        if start[:2] in _ZLIB and _inflates(start):
            raise InputError(
                f"{self.label} is a zlib file, perhaps a pickle of joblib", hint=_NEVER
            )
        if self.compression and _compression(start):
            raise InputError(f"{self.label} is compressed twice", hint="unpack it once")
        if start[4:10] == b"1AY&SY":
            raise InputError(f"{self.label} is a bzip2 file", hint="unpack it with bunzip2")
        if start[257:262] == b"ustar":
            raise InputError(f"{self.label} is a tar archive", hint="unpack it")

    def _decoded(self, first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield UTF-8 without byte order mark; whether it is valid is seen line by line later."""
        if self.encoding == "binary":
            yield first
            yield from blocks
            return
        if self.encoding == "utf-8-sig":
            first = first[len(codecs.BOM_UTF8) :]
        decoder = None
        if self.encoding in ("utf-16", "utf-32"):
            decoder = codecs.getincrementaldecoder(self.encoding)()
        for block in _chain(first, blocks):
            text = block if decoder is None else self._recoded(decoder, block, final=False)
            if b"\0" in text:
                raise InputError(
                    f"{self.label} is not text",
                    found="a NUL character",
                    hint="if it is UTF-16 without a byte order mark, save it as UTF-8",
                )
            if text:
                yield text
        if decoder is not None:
            self._recoded(decoder, b"", final=True)

    def _recoded(self, decoder: codecs.IncrementalDecoder, block: bytes, final: bool) -> bytes:
        try:
            return decoder.decode(block, final).encode()
        except UnicodeError as error:
            raise InputError(
                f"{self.label} is not valid {self.encoding.upper()}",
                found=str(error),
                hint="save it as UTF-8",
            ) from None


class _Raw(io.RawIOBase):
    """A raw stream over anything with ``read``: counts bytes and tells the progress bar."""

    def __init__(self, stream: BinaryIO, advance: Callable[[float], None]) -> None:
        self.stream = stream
        self.advance = advance
        self.position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(len(buffer))
        if isinstance(data, str):
            raise UsageError("the file is open as text", hint="open it in binary mode, with 'rb'")
        # a pipe may give its bytes one by one, and a format is known by its first few
        while self.position == 0 and 0 < len(data) < MAGIC:
            more = self.stream.read(len(buffer) - len(data))
            if not more:
                break
            data += more
        if not data:
            return 0
        buffer[: len(data)] = data
        self.position += len(data)
        self.advance(len(data))
        return len(data)


def label_of(source: Source) -> str:
    """Return how errors call a source."""
    if isinstance(source, (str, os.PathLike)):
        return "standard input" if str(source) == "-" else str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) and name else "input"


def open_source(source: Source) -> tuple[BinaryIO, int | None, bool]:
    """Open a source: the stream, its size in bytes if known, and whether it is ours to close."""
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "read"):
            raise UsageError(
                "the source must be a path, '-' or a binary file",
                found=type(source).__name__,
                hint="data in memory goes to as_run and as_qrels",
            )
        return source, None, False
    if str(source) == "-":
        return sys.stdin.buffer, None, False
    label = str(source)
    try:
        path = Path(source)
        if path.is_dir():
            raise InputError(
                f"{label} is a folder", hint="name the file in it, or use the command for folders"
            )
        stream = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise InputError(f"{label} does not exist", hint="check the path") from None
    except PermissionError:
        raise InputError(f"{label} may not be read", hint="check its permissions") from None
    except (OSError, ValueError) as error:  # a NUL in the path is a ValueError
        raise InputError(f"{label!r} cannot be opened", found=str(error)) from None
    status = os.fstat(stream.fileno())
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    return cast(BinaryIO, stream), size, True


def open_content(
    stream: BinaryIO, label: str, advance: Callable[[float], None] = lambda _: None
) -> Content:
    """Read the head of a binary stream and find its compression and encoding."""
    raw = _Raw(stream, advance)
    try:
        return Content(label, io.BufferedReader(raw, 1 << 18))
    except (OSError, ValueError) as error:
        raise InputError(f"{label} cannot be read", found=str(error)) from None


def content_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file's content after decompression, as the readers report it.

    Raises
    ------
    InputError
        If the file cannot be read, or its compression is broken.
    """
    digest = hashlib.sha256()
    name = Path(path).name
    try:
        with Path(path).open("rb") as file:
            compression, total = _compression(file.peek(8)), 0
            plain = _decompressed(file, compression, name)
            while block := plain.read(1 << 20):
                total += len(block)
                if compression:
                    _check_ratio(total, file.tell(), name)
                digest.update(block)
    except (OSError, EOFError, zlib.error, RuntimeError) as error:
        raise InputError(f"{name} cannot be read", found=str(error)) from None
    return digest.hexdigest()


def _inflates(start: bytes) -> bool:
    """Say whether these are the first bytes of a zlib file; a text may begin with the same two."""
    try:
        return bool(zlib.decompressobj().decompress(start[:4096], 1))
    except zlib.error:
        return False


def _check_ratio(unpacked: int, packed: int, label: str) -> None:
    if unpacked > RATIO_FREE and unpacked > LARGEST_RATIO * packed:
        raise InputError(
            f"{label} expands more than {LARGEST_RATIO}-fold",
            found=f"{unpacked} bytes from {packed}",
            hint="no ranking does: is the file damaged or made to fill the memory?",
        )


def _compression(start: bytes) -> str | None:
    if start.startswith(b"\x1f\x8b"):
        return "gzip"
    if start.startswith(b"\x04\x22\x4d\x18"):
        return "lz4"
    return None


def _decompressed(stream: io.BufferedReader, compression: str | None, label: str) -> BinaryIO:
    if compression == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
    if compression == "lz4":
        try:
            import lz4.frame
        except ImportError:
            raise MissingExtraError(
                f"{label} is compressed with lz4, which needs an optional package",
                hint="pip install 'falsify-adapters[lz4]'",
            ) from None
        return cast(BinaryIO, lz4.frame.LZ4FrameFile(stream, mode="rb"))
    return stream


def _from_ranx(packed: bytes, label: str, most: int) -> BinaryIO:
    """Turn what ranx keeps in lz4 inside lz4, a dict of dict in CBOR, into JSON.

    `most` is how many bytes of CBOR are taken.
    """
    import lz4.frame

    try:
        import cbor2
    except ImportError:
        raise MissingExtraError(
            f"{label} was saved by ranx as lz4, which needs an optional package",
            hint="pip install 'falsify-adapters[lz4]', or save it as JSON",
        ) from None
    # one byte more than is allowed shows that there is more
    data = lz4.frame.LZ4FrameDecompressor().decompress(packed, max_length=most + 1)
    if len(data) > most:
        raise InputError(
            f"{label} expands more than {LARGEST_RATIO}-fold",
            hint="no ranking does: is the file damaged or made to fill the memory?",
        )
    try:
        run = cbor2.loads(data)
        if not isinstance(run, dict):
            raise ValueError(f"{type(run).__name__} instead of a dict")
        return io.BytesIO(json.dumps(run).encode())
    except (cbor2.CBORError, ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"{label} is compressed twice, and not as ranx does it",
            found=str(error)[:80],
            hint="unpack it once",
        ) from None


def _encoding(start: bytes) -> str:
    if start.startswith(b"PAR1"):
        return "binary"
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding
    return "utf-8"


def _chain(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from blocks

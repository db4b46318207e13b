"""Where a file comes from: paths, pipes, standard input; compression and encoding."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import lz4.frame
import pytest

from falsify_adapters.errors import InputError, MissingExtraError, UsageError
from falsify_adapters.readers import read_qrels, read_run
from falsify_adapters.readers import source as source_module

RUN = b"q1 Q0 d1 1 2.0 t\nq1 Q0 d2 2 1.0 t\nq2 Q0 d1 1 3.0 t\n"
QRELS = b"query-id\tcorpus-id\tscore\nq1\td1\t1\n"


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_run(source, **options)
    return str(caught.value)


def test_a_path_as_text_or_path_object(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(RUN)
    assert len(read_run(path).frame) == len(read_run(str(path)).frame) == 3


def test_the_suffix_does_not_matter(tmp_path: Path) -> None:
    for name in ("run.gz", "run.json", "run.parquet", "run"):
        path = tmp_path / name
        path.write_bytes(RUN)
        assert read_run(path).provenance["format"] == "trec"


def test_provenance_names_the_file_and_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.gz"
    path.write_bytes(gzip.compress(RUN))
    found = read_run(path).provenance
    assert found.pop("sha256") == hashlib.sha256(RUN).hexdigest()
    assert found == {
        "name": "mine.gz",
        "format": "trec",
        "columns": "query in column 1, doc in column 3, rank in column 4, value in column 5"
        " (no header)",
        "encoding": "utf-8",
        "compression": "gzip",
        "rows": 3,
        "rows_kept": 3,
    }


@pytest.mark.parametrize("pack", [gzip.compress, lz4.frame.compress, bytes])
def test_the_hash_is_that_of_the_unpacked_content(pack: Any) -> None:
    found = read_run(io.BytesIO(pack(RUN))).provenance
    assert found["sha256"] == hashlib.sha256(RUN).hexdigest()


def test_a_missing_file() -> None:
    assert refusal("no/such/run.trec").startswith("no/such/run.trec does not exist")


def test_a_path_with_a_nul() -> None:
    assert "cannot be opened" in refusal("run\0.trec")


def test_a_folder(tmp_path: Path) -> None:
    assert f"{tmp_path} is a folder" in refusal(tmp_path)


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(RUN)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    # root may read everything, so the system's answer is played
    monkeypatch.setattr(Path, "open", refuse)
    assert f"{path} may not be read" in refusal(path)


def test_a_file_that_fails_while_it_is_read() -> None:
    class Broken(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, _buffer: Any) -> int:
            raise OSError(5, "Input/output error")

    assert "Input/output error" in refusal(Broken())


def test_a_fifo(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for byte in gzip.compress(RUN):
                pipe.write(bytes([byte]))  # one at a time, as a slow writer does

    writer = threading.Thread(target=write)
    writer.start()
    found = read_run(path)
    writer.join()
    assert len(found.frame) == 3


@pytest.mark.parametrize("data", [RUN, gzip.compress(RUN), RUN.decode().encode("utf-16")])
def test_a_stream_that_gives_one_byte_at_a_time(data: bytes) -> None:
    class Slow(io.RawIOBase):
        rest = data

        def read(self, _: int = -1) -> bytes:
            byte, self.rest = self.rest[:1], self.rest[1:]
            return byte

    assert len(read_run(Slow()).frame) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [RUN, gzip.compress(RUN)])
def test_standard_input(data: bytes) -> None:
    code = (
        "from falsify_adapters.readers import read_run\n"
        "file = read_run('-')\n"
        "print(len(file.frame), file.provenance['name'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=data,
        capture_output=True,
        check=True,
        cwd=Path(source_module.__file__).parents[2],
    )
    assert done.stdout.decode().split(maxsplit=1) == ["3", "standard input\n"]


def test_an_open_file_is_left_open(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(RUN)
    with path.open("rb") as stream:
        assert len(read_run(stream).frame) == 3
        assert not stream.closed


def test_a_file_open_as_text(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(RUN)
    with path.open() as stream, pytest.raises(UsageError, match="'rb'"):
        read_run(stream)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="binary"):
        read_run({"q1": {"d1": 1.0}})  # type: ignore[arg-type]


# -- compression ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [gzip.compress, lz4.frame.compress])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_cut_file_is_refused_and_never_read_in_part(pack: Any, part: float) -> None:
    packed = pack(RUN * 500)
    said = refusal(io.BytesIO(packed[: int(part * len(packed))]))
    assert "ends in the middle" in said or "cannot be unpacked" in said


@pytest.mark.parametrize("pack", [gzip.compress, lz4.frame.compress])
def test_a_cut_file_is_refused_with_the_bytes_that_it_has(pack: Any) -> None:
    packed = pack(RUN + random.Random(7).randbytes(30_000).hex().encode())[:20_000]
    assert "ends in the middle" in (said := refusal(io.BytesIO(packed)))
    assert "20,000 bytes and no end" in said


def test_several_gzip_members_are_one_file() -> None:
    first, second = RUN.splitlines(keepends=True)[:2], RUN.splitlines(keepends=True)[2:]
    data = gzip.compress(b"".join(first)) + gzip.compress(b"".join(second))
    assert len(read_run(io.BytesIO(data)).frame) == 3


def test_garbage_behind_gzip_data() -> None:
    assert "cannot be unpacked" in refusal(io.BytesIO(gzip.compress(RUN) + b"garbage"))


def test_compressed_twice() -> None:
    assert "compressed twice" in refusal(io.BytesIO(gzip.compress(gzip.compress(RUN))))


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        (b"q1 Q0 d1 1 1.0 t\n", b"\n"),
        (b"q1 Q0 d1 1 1.0 t\n", b"a"),
        (b"q1 Q0 d1 1 1.0 t\n", b"q1 Q0 d2 1 1.0 t\n"),
        (b'{"q1":\n', b"["),
        (b'{"query_id": "q", "doc_id": "d", "score": 1}\n', b"\n"),
    ],
    ids=["blank lines", "one line", "rows", "JSON", "JSON lines"],
)
def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(
    head: bytes, unit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "RATIO_FREE", 1 << 20)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as bomb:
        bomb.write(head)
        for _ in range(64):
            bomb.write(unit * ((1 << 20) // len(unit)))
    packed.seek(0)
    said = refusal(packed)
    assert "expands more than 200-fold" in said
    assert int(re.findall(r"(\d+) bytes from", said)[0]) <= 64 << 20


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "LONGEST_LINE", 1 << 23)
    assert "has a line of more than 8 MiB" in refusal(io.BytesIO(b"q1 Q0 " + b"x" * (1 << 24)))


def test_a_file_too_large_to_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "LARGEST_WHOLE", 1 << 20)
    data = b'{"q1": {\n' + b" " * (1 << 21) + b'"d1": 1}}'
    assert "too large to be read as a whole" in refusal(io.BytesIO(data))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x80\x04\x95\x10\x00\x00\x00", "a pickle"),
        (b"PK\x03\x04\x14\x00\x00\x00", "a zip archive"),
        (b"BZh91AY&SY\x00\x00", "a bzip2 file"),
        (b"\xfd7zXZ\x00\x00\x04", "an xz file"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "a zstd file"),
        (b"\x93NUMPY\x01\x00", "a numpy array"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"<!DOCTYPE html>\n<html></html>\n", "an HTML page"),
        (b"x".ljust(257, b"\0") + b"ustar\x0000", "a tar archive"),
    ],
)
def test_other_kinds_of_file_are_called_by_their_name(data: bytes, words: str) -> None:
    assert words in refusal(io.BytesIO(data))
    assert words in refusal(io.BytesIO(gzip.compress(data)))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("lz4", "lz4.frame", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"falsify-adapters\[lz4\]"):
        read_run(io.BytesIO(lz4_frame))
    with pytest.raises(MissingExtraError, match=r"falsify-adapters\[parquet\]"):
        read_run(io.BytesIO(b"PAR1" + b"\0" * 20 + b"PAR1"))


lz4_frame = lz4.frame.compress(RUN)


# -- encoding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_unicode_in_any_dress(encoding: str, line_end: str) -> None:
    text = "q\u00fc1\tQ0\td\U0001f600\t1\t2.0\tt\nq2\tQ0\td\u20281\t1\t1.0\tt\n"
    found = read_run(io.BytesIO(text.replace("\n", line_end).encode(encoding)))
    assert found.provenance["encoding"] == encoding
    assert found.frame["query_id"].tolist() == ["q2", "q\u00fc1"]
    assert found.frame["doc_id"].tolist() == ["d\u20281", "d\U0001f600"]


@pytest.mark.parametrize("byte_order", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_refused_with_a_word(byte_order: str) -> None:
    assert "UTF-16" in refusal(io.BytesIO(RUN.decode().encode(byte_order)))


def test_latin1_is_refused_with_the_line() -> None:
    data = RUN + "q3 Q0 M\u00fcller 1 1.0 t\n".encode("latin-1")
    said = refusal(io.BytesIO(data))
    assert "line 4 is not valid UTF-8" in said
    assert "0xfc" in said


def test_half_a_utf16_character() -> None:
    data = RUN.decode().encode("utf-16") + b"\x00\xd8\x20\x00"
    assert "is not valid UTF-16" in refusal(io.BytesIO(data))


def test_a_last_line_without_end() -> None:
    assert len(read_run(io.BytesIO(RUN.removesuffix(b"\n"))).frame) == 3
    assert len(read_run(io.BytesIO(RUN.replace(b"\n", b"\r\n").removesuffix(b"\n"))).frame) == 3


def test_old_macintosh_line_ends_are_refused() -> None:
    assert "carriage return" in refusal(io.BytesIO(RUN.replace(b"\n", b"\r")), format="trec")


def test_a_mark_before_a_header_is_no_part_of_it() -> None:
    found = read_qrels(io.BytesIO(b"\xef\xbb\xbf" + QRELS))
    assert found.frame["query_id"].tolist() == ["q1"]
    assert "(by header)" in found.provenance["columns"]


# -- pieces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [64, 1000, 5000])
def test_the_size_of_the_pieces_changes_nothing(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"q{i % 7} Q0 d{i} {i} {1000 - i}.5 tag" for i in range(900)]
    data = "\n".join(rows).encode()
    whole = read_run(io.BytesIO(data))
    monkeypatch.setattr(source_module, "CHUNK", size)
    monkeypatch.setattr(source_module, "HEAD", 100)

    class Slow(io.BytesIO):
        def read(self, n: int | None = -1) -> bytes:
            return super().read(min(n or 97, 97) if n and n > 0 else 97)

    assert read_run(Slow(data)).frame.equals(whole.frame)


def test_an_error_far_down_names_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "CHUNK", 1000)
    monkeypatch.setattr(source_module, "HEAD", 500)
    lines = ["query-id\tcorpus-id\tscore", *(f"q{i}\td{i}\t0.5" for i in range(100_000))]
    lines[70_000] = "q\td"
    said = refusal(io.BytesIO("\n".join(lines).encode()))
    assert "line 70001 has 2 fields where 3 are expected" in said

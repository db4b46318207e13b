"""Downloads against a server on this machine: whole, broken, slow, hostile, two at once."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from falsify_adapters import download
from falsify_adapters.adapters.beir import open_dataset, open_datasets
from falsify_adapters.data.table import BeirEntry, find_entry
from falsify_adapters.download import fetch, is_dataset
from falsify_adapters.errors import InputError, UsageError
from tests.cli_runs import runner

Respond = Callable[[BaseHTTPRequestHandler], None]

FILES = {
    "corpus.jsonl": '{"_id": "d1", "title": "Cats", "text": "sleep"}\n'
    '{"_id": "d2", "title": "Dogs", "text": "run"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "cats"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
}


def zip_of(files: dict[str, str], folder: str = "nfcorpus") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            # a fixed date, so that another process makes the same bytes
            info = zipfile.ZipInfo(f"{folder}/{name}", (2020, 1, 1, 0, 0, 0))
            archive.writestr(info, text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


WHOLE = zip_of(FILES)


def entry_for(content: bytes, name: str = "nfcorpus") -> BeirEntry:
    entry = find_entry(name)
    assert entry is not None
    return replace(entry, md5=hashlib.md5(content).hexdigest())


def send(content: bytes, length: int | None = None) -> Respond:
    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content) if length is None else length))
        request.end_headers()
        request.wfile.write(content)

    return respond


def trickle(content: bytes, seconds: float) -> Respond:
    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        for start in range(0, len(content), 64):
            request.wfile.write(content[start : start + 64])
            request.wfile.flush()
            time.sleep(seconds)

    return respond


class Server:
    def __init__(self) -> None:
        self.respond: Respond = send(WHOLE)
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                # the other side may give up, as some tests want
                with contextlib.suppress(ConnectionError):
                    outer.respond(self)

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/beir"


@pytest.fixture(autouse=True)
def nothing_at_hand(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Hide the data sets of whoever runs the tests."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.delenv("FALSIFY_DATA_DIR", raising=False)
    monkeypatch.delenv("FALSIFY_BEIR_URL", raising=False)
    monkeypatch.setattr("falsify_adapters.download.cache_folder", lambda: cache)
    monkeypatch.chdir(cache)
    return cache


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


def assert_nothing_left(folder: Path) -> None:
    assert list(folder.iterdir()) == []


def test_a_whole_zip_becomes_the_data_set(server: Server, tmp_path: Path) -> None:
    folder = fetch(entry_for(WHOLE), tmp_path / "new", base_url=server.url + "/")
    assert folder == tmp_path / "new" / "nfcorpus"
    found = {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert found == FILES
    assert [path.name for path in folder.parent.iterdir()] == ["nfcorpus"]
    assert server.requests == ["/beir/nfcorpus.zip"]


def test_a_data_set_that_is_there_is_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    fetch(entry_for(WHOLE), tmp_path, base_url=server.url)
    fetch(entry_for(WHOLE), tmp_path, base_url=server.url)
    assert len(server.requests) == 1


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("length", [len(WHOLE), len(WHOLE) // 2])
def test_a_zip_cut_off_half_way_is_refused(
    server: Server, tmp_path: Path, verify: bool, length: int
) -> None:
    # once as a broken connection, once as a server that believes in the shorter file
    server.respond = send(WHOLE[: len(WHOLE) // 2], length)
    with pytest.raises(InputError, match=r"broke off|not the one|damaged"):
        fetch(entry_for(WHOLE), tmp_path, base_url=server.url, verify=verify)
    assert_nothing_left(tmp_path)
    server.respond = send(WHOLE)
    assert is_dataset(fetch(entry_for(WHOLE), tmp_path, base_url=server.url, verify=verify))


def test_a_wrong_md5_is_refused_and_named(server: Server, tmp_path: Path) -> None:
    other = zip_of({**FILES, "queries.jsonl": "{}"})
    server.respond = send(other)
    with pytest.raises(InputError) as caught:
        fetch(entry_for(WHOLE), tmp_path, base_url=server.url)
    assert hashlib.md5(other).hexdigest() in str(caught.value)
    assert hashlib.md5(WHOLE).hexdigest() in str(caught.value)
    assert "--no-verify" in str(caught.value)
    assert_nothing_left(tmp_path)


def test_a_wrong_md5_can_be_accepted(server: Server, tmp_path: Path) -> None:
    entry = replace(entry_for(WHOLE), md5="0" * 32)
    assert is_dataset(fetch(entry, tmp_path, base_url=server.url, verify=False))


def test_404_is_a_clear_error(server: Server, tmp_path: Path) -> None:
    server.respond = lambda request: request.send_error(404, "no such file")
    with pytest.raises(InputError, match=r"404.*nfcorpus\.zip"):
        fetch(entry_for(WHOLE), tmp_path, base_url=server.url)
    assert_nothing_left(tmp_path)


def test_an_error_page_instead_of_a_zip_is_refused(server: Server, tmp_path: Path) -> None:
    server.respond = send(b"<html>log in first</html>")
    with pytest.raises(InputError, match="damaged"):
        fetch(entry_for(WHOLE), tmp_path, base_url=server.url, verify=False)
    assert_nothing_left(tmp_path)


def test_a_server_that_is_not_there_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(InputError, match="ConnectionError"):
        fetch(entry_for(WHOLE), tmp_path, base_url="http://127.0.0.1:1/beir")
    assert_nothing_left(tmp_path)


def test_a_slow_server_is_waited_for(server: Server, tmp_path: Path) -> None:
    server.respond = trickle(WHOLE, 0.01)
    assert is_dataset(fetch(entry_for(WHOLE), tmp_path, base_url=server.url, timeout=5))


def test_a_server_that_falls_silent_is_given_up(server: Server, tmp_path: Path) -> None:
    silence = threading.Event()

    def stall(request: BaseHTTPRequestHandler) -> None:
        send(WHOLE[:100], len(WHOLE))(request)
        silence.wait(30)

    server.respond = stall
    try:
        with pytest.raises(InputError, match="broke off"):
            fetch(entry_for(WHOLE), tmp_path, base_url=server.url, timeout=0.3)
    finally:
        silence.set()
    assert_nothing_left(tmp_path)


FETCH = """
import sys
from pathlib import Path
from test_download import WHOLE, entry_for
from falsify_adapters.download import fetch
print(fetch(entry_for(WHOLE), Path(sys.argv[1]), base_url=sys.argv[2]))
"""


def start_fetch(folder: Path, url: str) -> subprocess.Popen[str]:
    tests = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)])}
    return subprocess.Popen(
        [sys.executable, "-c", FETCH, str(folder), url],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_at_once_both_get_the_data_set(server: Server, tmp_path: Path) -> None:
    both_are_here = threading.Barrier(2)

    def respond(request: BaseHTTPRequestHandler) -> None:
        both_are_here.wait(60)
        send(WHOLE)(request)

    server.respond = respond
    processes = [start_fetch(tmp_path, server.url) for _ in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
        assert output.strip() == str(tmp_path / "nfcorpus")
    assert len(server.requests) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["nfcorpus"]
    assert (tmp_path / "nfcorpus/corpus.jsonl").read_text() == FILES["corpus.jsonl"]


def test_a_killed_download_leaves_nothing_that_counts(server: Server, tmp_path: Path) -> None:
    half_sent, release = threading.Event(), threading.Event()

    def respond(request: BaseHTTPRequestHandler) -> None:
        send(WHOLE[:200], len(WHOLE))(request)
        half_sent.set()
        release.wait(60)

    server.respond = respond
    process = start_fetch(tmp_path, server.url)
    assert half_sent.wait(60)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    release.set()
    assert not is_dataset(tmp_path / "nfcorpus")
    with pytest.raises(InputError, match="downloads are switched off"):
        open_dataset("nfcorpus", data_dir=tmp_path, offline=True)
    server.respond = send(WHOLE)
    assert is_dataset(fetch(entry_for(WHOLE), tmp_path, base_url=server.url))


def test_what_a_killed_download_left_is_swept_after_a_week(server: Server, tmp_path: Path) -> None:
    stale, fresh = tmp_path / ".falsify-download-old", tmp_path / ".falsify-download-new"
    stale.mkdir()
    fresh.mkdir()
    os.utime(stale, (0, 0))
    fetch(entry_for(WHOLE), tmp_path, base_url=server.url)
    assert not stale.exists()
    assert fresh.exists()


@pytest.mark.parametrize(
    "name",
    ["../evil", "nfcorpus/../../evil", "/tmp/evil", "nfcorpus\\..\\evil", "C:/evil", "C:evil"],
)
def test_an_entry_that_leaves_the_folder_is_refused(
    server: Server, tmp_path: Path, name: str
) -> None:
    buffer = io.BytesIO(WHOLE)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(name, "evil")
    server.respond = send(buffer.getvalue())
    with pytest.raises(InputError, match="leaves its folder"):
        fetch(entry_for(buffer.getvalue()), tmp_path / "data", base_url=server.url)
    assert_nothing_left(tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_link_in_the_zip_is_refused(server: Server, tmp_path: Path) -> None:
    buffer = io.BytesIO(WHOLE)
    with zipfile.ZipFile(buffer, "a") as archive:
        link = zipfile.ZipInfo("nfcorpus/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc")
    server.respond = send(buffer.getvalue())
    with pytest.raises(InputError, match="leaves its folder"):
        fetch(entry_for(buffer.getvalue()), tmp_path, base_url=server.url)


def test_a_zip_that_expands_beyond_reason_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = zip_of({**FILES, "zeros": "0" * 3_000_000})
    server.respond = send(bomb)
    assert is_dataset(fetch(entry_for(bomb), tmp_path / "a", base_url=server.url))
    monkeypatch.setattr(download, "RATIO_FREE", 1 << 10)
    with pytest.raises(InputError, match="expands beyond reason"):
        fetch(entry_for(bomb), tmp_path / "b", base_url=server.url)
    assert_nothing_left(tmp_path / "b")


def test_a_disk_that_is_too_small_is_named_before_it_is_full(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(InputError, match="1 bytes free"):
        fetch(entry_for(WHOLE), tmp_path, base_url=server.url)


def test_a_damaged_entry_is_refused(server: Server, tmp_path: Path) -> None:
    where = WHOLE.index(b"corpus.jsonl") + 20
    damaged = WHOLE[:where] + bytes([WHOLE[where] ^ 0xFF]) + WHOLE[where + 1 :]
    server.respond = send(damaged)
    with pytest.raises(InputError, match="damaged"):
        fetch(entry_for(damaged), tmp_path, base_url=server.url)
    assert_nothing_left(tmp_path)


def test_the_same_name_twice_in_the_zip_is_refused(server: Server, tmp_path: Path) -> None:
    buffer = io.BytesIO(WHOLE)
    with (
        zipfile.ZipFile(buffer, "a") as archive,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        archive.writestr("nfcorpus/queries.jsonl", "other")
    server.respond = send(buffer.getvalue())
    with pytest.raises(InputError, match="damaged"):
        fetch(entry_for(buffer.getvalue()), tmp_path, base_url=server.url)


def test_a_zip_of_something_else_is_refused(server: Server, tmp_path: Path) -> None:
    other = zip_of({"readme.txt": "hello"})
    server.respond = send(other)
    with pytest.raises(InputError, match="holds no data set"):
        fetch(entry_for(other), tmp_path, base_url=server.url)
    assert_nothing_left(tmp_path)


def test_a_folder_without_data_is_not_overwritten(server: Server, tmp_path: Path) -> None:
    (tmp_path / "nfcorpus").mkdir()
    (tmp_path / "nfcorpus/mine.txt").write_text("keep")
    with pytest.raises(InputError, match="in the way"):
        fetch(entry_for(WHOLE), tmp_path, base_url=server.url)
    assert (tmp_path / "nfcorpus/mine.txt").read_text() == "keep"
    assert server.requests == []


def test_a_folder_that_cannot_be_written_is_a_clear_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be stored"):
        fetch(entry_for(WHOLE), tmp_path / "file" / "below", base_url=server.url)


@pytest.mark.parametrize("address", ["ftp://mirror/beir", "mirror/beir", "file:///tmp"])
def test_an_address_that_is_no_web_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match="not a web address"):
        fetch(entry_for(WHOLE), tmp_path, base_url=address)


@pytest.mark.parametrize("name", ["bioasq", "signal1m", "trec-news", "robust04"])
def test_data_sets_without_a_download_say_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=rf"no download of {name}.*qrels/test\.tsv"):
        open_dataset(name, data_dir=tmp_path)


def test_a_name_is_downloaded_from_the_mirror_in_the_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FALSIFY_BEIR_URL", server.url)
    monkeypatch.setenv("FALSIFY_DATA_DIR", str(tmp_path / "data"))
    dataset = open_dataset("NFCorpus", verify=False)
    assert (dataset.name, dataset.split, dataset.corpus_size) == ("nfcorpus", "test", 2)
    assert is_dataset(tmp_path / "data" / "nfcorpus")
    assert open_dataset("nfcorpus", offline=True).corpus_ids == {"d1", "d2"}


def test_without_any_folder_named_the_users_cache_is_used(
    server: Server, nothing_at_hand: Path
) -> None:
    open_dataset("nfcorpus", base_url=server.url, verify=False)
    assert is_dataset(nothing_at_hand / "datasets" / "nfcorpus")


def test_the_forums_of_cqadupstack_come_in_one_zip(server: Server, tmp_path: Path) -> None:
    forums = {f"{forum}/{name}": text for forum in ("tex", "unix") for name, text in FILES.items()}
    server.respond = send(zip_of(forums, "cqadupstack"))
    options = {"data_dir": tmp_path, "base_url": server.url, "verify": False}
    assert open_dataset("cqadupstack/unix", **options).title == "cqadupstack/unix"
    titles = [dataset.title for dataset in open_datasets("CQADupStack", **options)]
    assert titles == ["cqadupstack/tex", "cqadupstack/unix"]
    assert len(server.requests) == 1
    with pytest.raises(UsageError, match=r"2 benchmarks.*cqadupstack/tex"):
        open_dataset("cqadupstack", **options)


def test_a_progress_bar_counts_the_bytes(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars: list[Bar] = []

    class Bar:
        def __init__(self, description: str) -> None:
            self.description, self.total, self.done, self.closed = description, 0, 0, False
            bars.append(self)

        def update(self, n_bytes: int) -> None:
            self.done += n_bytes

        def reset(self) -> None:
            self.done = 0

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(download, "ByteBar", Bar)
    fetch(entry_for(WHOLE), tmp_path / "quiet", base_url=server.url, progress=False)
    assert bars == []
    fetch(entry_for(WHOLE), tmp_path / "loud", base_url=server.url, progress=True)
    (bar,) = bars
    assert bar.description == "downloading nfcorpus"
    assert bar.total == bar.done == len(WHOLE)
    assert bar.closed


def test_the_command_downloads_and_takes_another_md5_only_when_told(
    server: Server, tmp_path: Path
) -> None:
    from falsify_adapters.cli.beir import main

    options = ["-d", "nfcorpus", "--base-url", server.url, "--data-dir", str(tmp_path / "data")]
    refused = runner().invoke(main, [*options, "--json", "-"])
    assert refused.exit_code == 2
    assert "--no-verify" in refused.stderr
    graded = runner().invoke(main, [*options, "--json", "-", "--no-verify"])
    assert graded.exit_code in (0, 1, 3), graded.stderr
    assert '"corpus_size": 2' in graded.stdout

"""What strangers hand over is data: nothing in it is run, and nothing of it fills the machine."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import lz4.frame
import numpy as np
import pytest

from falsify_adapters import readers
from falsify_adapters.download import unpack
from falsify_adapters.errors import InputError, MeasureError
from falsify_adapters.measures import parse_measure
from tests.cli_runs import ROOT, call, launcher, report, write_dataset, write_qrels, write_run

N = 30
MIB = 1 << 20
#: More than a reader may need for a few MiB of input, libraries included.
MEMORY = 2048 * MIB


class Payload:
    """Unpickled, it writes a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.target),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_qrels(tmp_path / "qrels.trec", N)
    write_run(tmp_path / "good.trec", N)
    return tmp_path


# --- pickles -------------------------------------------------------------------------------------


def saved(how: Callable[[Any, io.BytesIO], object], payload: Any) -> bytes:
    stream = io.BytesIO()
    how(payload, stream)
    return stream.getvalue()


def torch_like(payload: Any, stream: io.BytesIO) -> None:
    """Write what torch.save writes: a zip with a pickle in it."""
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(payload))


PICKLES: dict[str, Callable[[Any, io.BytesIO], object]] = {
    **{
        f"protocol {n}": lambda payload, stream, n=n: pickle.dump(payload, stream, n)
        for n in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    **{
        f"a dict in protocol {n}": lambda payload, stream, n=n: pickle.dump(
            {"q1": {"d1": payload}}, stream, n
        )
        for n in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    "joblib": joblib.dump,
    **{
        f"joblib {how}": lambda payload, stream, how=how: joblib.dump(payload, stream, how)
        for how in (1, 3, 6, 9, ("gzip", 3), ("lzma", 3), ("xz", 3), ("bz2", 3))
    },
    "npy": lambda payload, stream: np.save(
        stream, np.array([payload], dtype=object), allow_pickle=True
    ),
    "npz": lambda payload, stream: np.savez(
        stream, allow_pickle=True, a=np.array([payload], dtype=object)
    ),
    "torch": torch_like,
}


@pytest.mark.parametrize("kind", PICKLES)
@pytest.mark.parametrize("name", ["run.pkl", "run.json", "run.parquet", "run.trec.gz"])
def test_no_pickle_is_ever_loaded(folder: Path, kind: str, name: str) -> None:
    written = folder / "written"
    content = saved(PICKLES[kind], Payload(written))
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    for read in (readers.read_run, readers.read_qrels, readers.read_exclusions):
        with pytest.raises(InputError) as caught:
            read(path)
        assert caught.value.hint
    assert not written.exists()


@pytest.mark.parametrize("kind", ["a dict in protocol 0", "a dict in protocol 1", "protocol 5"])
def test_a_pickle_is_refused_with_how_to_convert_it(folder: Path, kind: str) -> None:
    (folder / "run.pkl").write_bytes(saved(PICKLES[kind], 0.5 if "dict" in kind else [0.5]))
    result = call("ir", folder / "qrels.trec", folder / "run.pkl", "--corpus-size", "99")
    assert result.exit_code == 2
    assert "is a pickle; hint: pickles can run code and are never loaded" in result.stderr
    assert "json.dump" in result.stderr


def test_the_payload_of_these_tests_works(tmp_path: Path) -> None:
    pickle.loads(saved(PICKLES["protocol 2"], Payload(tmp_path / "written")))
    assert (tmp_path / "written").exists()


# --- measures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').mkdir({target!r})",
        "nDCG(gains=__import__('os').mkdir({target!r}))@10",
        "P(rel=open({target!r}, 'w'))@5",
        "P@(lambda: 1)()",
        "nDCG@10; import os",
        "[nDCG@10][0]",
        "nDCG@" + "9" * 5000,
        "P(rel=" + "9" * 5000 + ")",
        "-" * 100_000 + "1",
        "(" * 100_000,
        "nDCG@" + "-" * 100_000 + "1",
        "nDCG(" * 50,
        "P(rel=" + "[" * 150,
        "nDCG@10\0",
        "\ud800@10",
        "",
    ],
)
def test_a_measure_is_parsed_and_never_evaluated(tmp_path: Path, text: str) -> None:
    target = str(tmp_path / "written")
    with pytest.raises(MeasureError) as caught:
        parse_measure(text.replace("{target!r}", repr(target)))
    assert len(str(caught.value)) < 500
    assert not Path(target).exists()


# --- depth and size ------------------------------------------------------------------------------

DEEP = {
    "lists": "[" * 200_000,
    "objects": '{"a":' * 100_000,
    "closed": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "in a row": '{"query_id": "q000", "_id": "q000", "text": ' + "[" * 100_000 + "\n",
}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize(
    "arguments",
    [
        ("ir", "{good}", "{good}"),
        ("ir", "{qrels}", "{deep}"),
        ("ir", "{deep}", "{good}"),
        ("ir", "{qrels}", "{good}", "--baseline", "{deep}"),
        ("ir", "{qrels}", "{good}", "--exclude", "{deep}"),
        ("ir", "{qrels}", "{good}", "--alt-qrels", "{deep}"),
        ("ir", "{qrels}", "{good}", "--clusters", "{deep}"),
        ("ir", "{qrels}", "{good}", "--queries", "{deep}", "--clusters", "auto"),
        ("ir", "--from", "auto", "{deep}"),
        ("ir", "--from", "olmes", "{deep}"),
        ("ir", "--from", "ragas", "{deep}"),
        ("audit", "{deep}"),
        ("verify", "{deep}"),
        ("beir", "--dataset", "{data}"),
        ("mteb", "{mteb}", "--qrels", "{folder}"),
        ("ir", "{qrels}", "{good}", "--config", "{toml}"),
        ("ir", "{qrels}", "{good}", "--plan", "{toml}"),
    ],
    ids=" ".join,
)
def test_what_is_nested_too_deeply_is_refused(
    folder: Path, kind: str, arguments: tuple[str, ...]
) -> None:
    places = {
        "deep": folder / "deep.json",
        "toml": folder / "deep.toml",
        "data": folder / "data",
        "mteb": folder / "mteb",
        "good": folder / "good.trec",
        "qrels": folder / "qrels.trec",
        "folder": folder,
    }
    places["deep"].write_text(DEEP[kind])
    places["toml"].write_text("a = " + DEEP[kind].replace(":", "="))
    write_dataset(places["data"], 3)
    (places["data"] / "corpus.jsonl").write_text(DEEP[kind])
    places["mteb"].mkdir()
    (places["mteb"] / "Task_predictions.json").write_text(DEEP[kind])
    command, *rest = (argument.format(**places) for argument in arguments)
    quick = [] if command == "verify" else ["--json", str(folder / "out.json")]
    result = call(command, *rest, *quick)
    assert result.exit_code == 2, result.stderr
    assert "internal error" not in result.stderr
    assert len(result.stderr) < 3000


def test_a_folder_with_hostile_reports_is_locked(folder: Path) -> None:
    schema = {"schema": "falsify-adapters/report/1"}
    hostile: list[Any] = [
        schema,
        schema | {"reports": 7},
        schema | {"reports": [7, {"score": "x"}, {"score": 0.5}, {"score": 10**400}]},
        schema | {"reports": [{"score": 0.5, "measure": "a\nb", "system": ["x\ny"]}]},
    ]
    for number, document in enumerate(hostile):
        (folder / f"{number}.json").write_text(json.dumps(document))
    (folder / "deep.json").write_text(DEEP["lists"])
    assert call("lock", folder).exit_code == 0
    assert call("verify-lock", folder).exit_code == 0


@pytest.mark.parametrize("content", [{"reports": [7]}, {"reports": [{"provenance": 7}]}])
def test_a_hostile_baseline_is_refused(folder: Path, content: Any) -> None:
    (folder / "base.json").write_text(json.dumps(content))
    options = ("--corpus-size", "99", "--baseline", folder / "base.json")
    result = call("ir", folder / "qrels.trec", folder / "good.trec", *options)
    assert result.exit_code == 2
    assert "internal error" not in result.stderr


def test_a_file_that_cannot_be_unpacked_does_not_stop_those_beside_it(folder: Path) -> None:
    whole = gzip.compress((folder / "good.trec").read_bytes())
    (folder / "cut.trec.gz").write_bytes(whole[: len(whole) // 2])
    runs = (folder / "good.trec", folder / "cut.trec.gz")
    document = report("ir", folder / "qrels.trec", *runs, "--corpus-size", "999", status=2)
    assert [one["system"] for one in document["reports"]] == ["good"]
    (error,) = document["errors"]
    assert "ends in the middle of its gzip data" in error["lacks"]
    names = [Path(one["name"]).name for one in document["call"]["inputs"]]
    assert names == ["qrels.trec", "good.trec"]


# --- bombs ---------------------------------------------------------------------------------------

#: 4 GiB out of a few MiB: a packed piece, again and again.
PIECE = 16 * MIB
TIMES = 256
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "lz4": lz4.frame.compress,
}


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bombs")
    for name, pack in PACK.items():
        for kind, unit in (("lines", b"q000 Q0 d000 1 1.0 tag\n"), ("line", b'{"' + b"a" * 1022)):
            packed = pack(unit * (PIECE // len(unit)))
            with (folder / f"{kind}.{name}").open("wb") as file:
                for _ in range(TIMES):
                    file.write(packed)
    packed = lz4.frame.compress(b"a" * (PIECE * 32))
    (folder / "twice.lz4").write_bytes(lz4.frame.compress(packed))
    (folder / "data" / "qrels").mkdir(parents=True)
    (folder / "data" / "corpus.jsonl.gz").symlink_to(folder / "line.gz")
    (folder / "data" / "queries.jsonl").write_text('{"_id": "q000", "text": "x"}\n')
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq000\td\t1\n")
    return folder


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("ir", ("{qrels}", "{bombs}/lines.gz", "{bombs}/line.gz")),
        ("ir", ("{qrels}", "{bombs}/lines.lz4", "{bombs}/line.lz4", "{bombs}/twice.lz4")),
        ("beir", ("--dataset", "{bombs}/data", "--no-playground")),
    ],
    ids=["gzip", "lz4", "corpus"],
)
def test_a_bomb_is_refused_in_bounded_memory(
    folder: Path, bombs: Path, command: str, arguments: tuple[str, ...]
) -> None:
    given = [argument.format(bombs=bombs, qrels=folder / "qrels.trec") for argument in arguments]
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))\n"
    start = launcher(command, *given, "--json", folder / "out.json")
    start[2] = limited + start[2]
    done = subprocess.run(
        start,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "memory" not in done.stderr.replace("fill the memory", "")
    n_bombs = sum("bombs" in argument for argument in arguments)
    said = ("expands more than 200-fold", "has a line of more than 64 MiB")
    assert sum(done.stderr.count(words) for words in said) == n_bombs, done.stderr


def test_a_zip_bomb_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    archive, target = tmp_path / "bomb.zip", tmp_path / "out"
    target.mkdir()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("mine/qrels/test.tsv", b"\0" * (256 * MIB))
    with pytest.raises(InputError, match="expands beyond reason"):
        unpack(archive, target, "mine")
    assert not list(target.iterdir())

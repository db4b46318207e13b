"""Whatever a path is made of, it leads to a plain file below the folder or to a refusal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.mcp_server.files import Files

SECRET = b"secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "a.trec").write_bytes(b"inside")
    (folder / "~").mkdir()
    (folder / "~" / "b.trec").write_bytes(b"tilde")
    (tmp_path / "outside.trec").write_bytes(SECRET)
    (tmp_path / "root-beside").mkdir()
    (tmp_path / "root-beside" / "c.trec").write_bytes(SECRET)
    return folder


def content(root: Path, path: str, largest: int = 1000) -> bytes:
    with Files(str(root), largest).open(path) as stream:
        return stream.read()


@pytest.mark.parametrize(
    "path",
    [
        "runs/a.trec",
        "./runs/a.trec",
        "runs//a.trec",
        "runs/../runs/a.trec",
        "{root}/runs/a.trec",
        "{root}/nowhere/../runs/a.trec",
        "../root/runs/a.trec",
    ],
)
def test_a_path_that_ends_inside_is_read(root: Path, path: str) -> None:
    assert content(root, path.format(root=root)) == b"inside"


def test_the_name_of_a_file_is_its_path_in_the_folder(root: Path) -> None:
    with Files(str(root), 1000).open(f"{root}/runs/a.trec") as stream:
        assert stream.name == str(Path("runs", "a.trec"))


def test_a_tilde_is_a_name_like_any_other(root: Path) -> None:
    assert content(root, "~/b.trec") == b"tilde"
    with pytest.raises(InputError, match="is no file"):
        content(root, "~root/b.trec")


def test_links_inside_the_folder_are_followed_and_others_refused(root: Path) -> None:
    (root / "good").symlink_to(root / "runs")
    (root / "same.trec").symlink_to("runs/a.trec")
    assert content(root, "good/a.trec") == content(root, "same.trec") == b"inside"
    (root / "out").symlink_to(root.parent)
    (root / "one.trec").symlink_to(root.parent / "outside.trec")
    (root / "gone.trec").symlink_to(root.parent / "nowhere.trec")
    (root / "loop").symlink_to("loop")
    for path in ("out/outside.trec", "one.trec", "gone.trec", "out/root/../outside.trec", "loop"):
        with pytest.raises(InputError):
            content(root, path)


def test_the_folder_itself_may_be_a_link(root: Path) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)
    assert content(alias, f"{alias}/runs/a.trec") == b"inside"
    assert content(alias, f"{root}/runs/a.trec") == b"inside"


@pytest.mark.parametrize(
    "path",
    [
        "../outside.trec",
        "runs/../../outside.trec",
        "{parent}/outside.trec",
        "{root}/../outside.trec",
        "{root}-beside/c.trec",
        "../root-beside/c.trec",
        "/etc/passwd",
        "/dev/zero",
        "/proc/self/environ",
        "//{root}/../outside.trec",
        "\\\\server\\share\\run.trec",
        "C:\\run.trec",
        "file:///etc/passwd",
        "outside.trec\0",
        "runs/a.trec\0.txt",
        "\0",
        "/" + "x" * 5000,
        "x" * 5000,
        "../" * 3000,
    ],
)
def test_a_path_that_leads_out_is_refused(root: Path, path: str) -> None:
    with pytest.raises(InputError) as caught:
        content(root, path.format(root=root, parent=root.parent))
    assert len(str(caught.value)) < 400
    assert "\0" not in str(caught.value)


def test_a_refusal_does_not_tell_what_exists_outside(root: Path) -> None:
    def refusal(path: str) -> str:
        with pytest.raises(InputError) as caught:
            content(root, path)
        return str(caught.value).replace(path, "PATH")

    (root / "there").symlink_to(root.parent / "outside.trec")
    (root / "gone").symlink_to(root.parent / "nowhere.trec")
    assert refusal("../outside.trec") == refusal("../nowhere.trec") == refusal("../root-beside")
    assert refusal("there") == refusal("gone") == refusal("../outside.trec")
    # a link outside is not followed to find out that one comes back
    (root.parent / "link").symlink_to(root / "runs")
    assert refusal("../link/a.trec") == refusal("../none/a.trec")


@pytest.mark.parametrize("path", ["", ".", "runs", "runs/", "{root}"])
def test_folders_are_refused(root: Path, path: str) -> None:
    with pytest.raises(InputError, match=r"no (plain )?file"):
        content(root, path.format(root=root))


def test_a_named_pipe_is_refused_without_waiting_for_its_writer(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(InputError, match="no plain file"):
        content(root, "pipe")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(root: Path) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(1 << 40)  # a hole: nothing is written
    with pytest.raises(InputError, match=r"'large' is too large \(limit 1,000 bytes\)"):
        content(root, "large")
    assert content(root, "runs/a.trec", largest=6) == b"inside"


def test_no_handle_is_left_open_by_refusals(root: Path) -> None:
    os.mkfifo(root / "pipe")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("pipe", "runs", "nowhere", "runs/nowhere", "runs/a.trec/x", "../outside.trec"):
        with pytest.raises(InputError):
            content(root, path)
    with pytest.raises(InputError, match="too large"):
        content(root, "runs/a.trec", largest=1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_folder_that_becomes_a_link_in_between_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.path.realpath

    def swap(path: str) -> str:
        found = real(path)
        (root / "runs").rename(root / "moved")
        (root / "runs").symlink_to(root.parent / "root-beside")
        return found

    files = Files(str(root), 1000)
    monkeypatch.setattr("os.path.realpath", swap)
    with pytest.raises(InputError, match="is no file"):
        files.open("runs/a.trec")
    monkeypatch.undo()
    with pytest.raises(InputError, match="leads out"):
        files.open("runs/c.trec")


def test_without_a_folder_nothing_is_read(root: Path) -> None:
    for path in ("runs/a.trec", str(root / "runs" / "a.trec"), "/etc/passwd", ""):
        with pytest.raises(UsageError, match="this server reads no files"):
            Files(None, 1000).open(path)


@given(
    st.lists(
        st.sampled_from(["..", ".", "", "runs", "a.trec", "out", "~", "outside.trec", "/", "root"]),
        max_size=8,
    )
)
def test_no_path_reads_what_is_outside(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    if not folder.exists():
        (folder / "root" / "runs").mkdir(parents=True)
        (folder / "root" / "runs" / "a.trec").write_bytes(b"inside")
        (folder / "root" / "out").symlink_to(folder)
        (folder / "outside.trec").write_bytes(SECRET)
    try:
        found = content(folder / "root", "/".join(parts))
    except InputError:
        return
    assert found == b"inside"

"""Download a data set of BEIR: whole and checked, or not at all.

A download is fetched, checked and unpacked in a scratch folder beside its destination, and only
then renamed into place. So a folder that exists is complete, a process that dies leaves nothing
that could be mistaken for data, and of two processes at once the later one finds the work done.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from falsify_adapters.data.table import BeirEntry
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.progress import ByteBar, importing, wanted

#: BEIR's server, as its documentation gives it.
BEIR_URL = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
#: Environment variable that names a mirror.
URL_VARIABLE = "FALSIFY_BEIR_URL"
#: Seconds without a byte after which a server counts as gone.
TIMEOUT = 60.0

#: No data set of BEIR unpacks to more bytes than this.
LARGEST_UNPACKED = 64 << 30
#: JSON lines shrink three- to tenfold; an archive that expands more than this is no data set.
LARGEST_RATIO = 100
RATIO_FREE = 16 << 20

_SCRATCH = ".falsify-download-"
_STALE_SECONDS = 7 * 24 * 3600


def cache_folder() -> Path:
    """Return the user's cache folder for this package (not created)."""
    with importing():
        import pooch

    return Path(pooch.os_cache("falsify-adapters"))


def fetch(
    entry: BeirEntry,
    folder: Path,
    *,
    base_url: str | None = None,
    verify: bool = True,
    timeout: float = TIMEOUT,
    progress: bool | None = None,
) -> Path:
    """Download a data set and unpack it as ``folder/NAME``.

    Parameters
    ----------
    entry : BeirEntry
        Which data set.
    folder : Path
        Where data sets lie; created if need be.
    base_url : str, optional
        Address under which ``NAME.zip`` lies; by default the one in ``FALSIFY_BEIR_URL``, else
        BEIR's server.
    verify : bool
        Refuse a zip whose md5 is not the one in BEIR's README. The published sums have been wrong
        before; with False the zip only has to be whole.
    timeout : float
        Seconds without a byte after which the server counts as gone.
    progress : bool, optional
        Draw a progress bar; by default only on a terminal.

    Returns
    -------
    Path
        The data set's folder.

    Raises
    ------
    InputError
        If BEIR offers no download, the server does not answer, or what comes is not the data set.
    """
    if entry.md5 is None:
        raise InputError(
            f"BEIR offers no download of {entry.name}",
            found="a data set whose licence does not allow it",
            hint=f"get it from its owner, bring it into BEIR's layout (corpus.jsonl, queries.jsonl,"
            f" qrels/{entry.default_split}.tsv) and name that folder",
        )
    url = f"{_base_url(base_url)}/{entry.name}.zip"
    destination = folder / entry.name
    if is_dataset(destination):
        return destination
    if destination.exists():
        raise InputError(
            f"{destination} is in the way of the download",
            found="a folder that holds no data set",
            hint="move it away, or name another data folder",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        with tempfile.TemporaryDirectory(
            prefix=_SCRATCH, dir=folder, ignore_cleanup_errors=True
        ) as scratch:
            archive = Path(scratch) / "archive.zip"
            _download(url, archive, entry.name, timeout, progress)
            if verify:
                _check_md5(archive, url, entry)
            unpacked = unpack(archive, Path(scratch) / "unpacked", entry.name)
            _move(unpacked, destination)
    except OSError as error:
        raise InputError(
            f"{entry.name} cannot be stored in {folder}",
            found=error.strerror or str(error),
            hint="name another data folder",
        ) from error
    return destination


def is_dataset(folder: Path) -> bool:
    """Return whether a folder has BEIR's layout: qrels, or subfolders with qrels."""
    return (folder / "qrels").is_dir() or bool(subsets(folder))


def subsets(folder: Path) -> list[Path]:
    """Return the subfolders that are data sets themselves (cqadupstack's forums), sorted."""
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".") and (path / "qrels").is_dir()
    )


def unpack(archive: Path, folder: Path, name: str) -> Path:
    """Unpack a data set's zip and return the folder in it that is the data set.

    Raises
    ------
    InputError
        If the zip is damaged, an entry would leave the folder or is a link, it expands beyond
        reason, or it holds no data set.
    """
    try:
        with zipfile.ZipFile(archive) as zip_file:
            members = [info for info in zip_file.infolist() if not info.is_dir()]
            _check_members(members, archive, name)
            for info in members:
                target = folder.joinpath(*PurePosixPath(info.filename).parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                # zipfile reads no more than the declared size, and checks the sum at its end
                with zip_file.open(info) as source, target.open("xb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, FileExistsError) as error:
        raise InputError(
            f"the zip of {name} is damaged",
            found=str(error),
            hint="download it again; nothing of it was kept",
        ) from error
    inner = folder / name
    if not is_dataset(inner):
        raise InputError(
            f"the zip of {name} holds no data set",
            found=f"no {name}/qrels in it",
            hint="is the mirror's address right?",
        )
    return inner


def _base_url(base_url: str | None) -> str:
    address = base_url or os.environ.get(URL_VARIABLE) or BEIR_URL
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError(
            "the address of BEIR's server is not a web address",
            found=address,
            hint="for example https://mirror.example/beir, under which NAME.zip lies",
        )
    return address.rstrip("/")


def _download(url: str, target: Path, name: str, timeout: float, progress: bool | None) -> None:
    with importing():
        import pooch
    import requests

    bar = ByteBar(f"downloading {name}") if wanted(progress) else None
    download = pooch.HTTPDownloader(progressbar=bar or False, chunk_size=1 << 16, timeout=timeout)
    try:
        download(url, str(target), None)
    except requests.HTTPError as error:
        raise InputError(
            f"{name} cannot be downloaded",
            found=str(error),
            hint="is the address right? A mirror is named by --base-url",
        ) from error
    except requests.RequestException as error:
        raise InputError(
            f"the download of {name} broke off",
            found=f"{type(error).__name__} from {url}",
            hint="run it again: it starts afresh, and nothing half-done was kept",
        ) from error
    finally:
        if bar is not None:
            bar.close()


def _check_md5(archive: Path, url: str, entry: BeirEntry) -> None:
    with importing():
        import pooch

    found = pooch.file_hash(str(archive), alg="md5")
    if found != entry.md5:
        raise InputError(
            f"the zip of {entry.name} is not the one that BEIR published",
            found=f"md5 {found} ({archive.stat().st_size} bytes) from {url}; expected {entry.md5}",
            hint="try again; if the file is known to be right, --no-verify (verify=False) takes it",
        )


def _check_members(members: list[zipfile.ZipInfo], archive: Path, name: str) -> None:
    for info in members:
        path = PurePosixPath(info.filename)
        outside = path.is_absolute() or ".." in path.parts or not path.parts
        foreign = any(char in info.filename for char in "\\:")  # what Windows reads as a path
        if outside or foreign or stat.S_ISLNK(info.external_attr >> 16):
            raise InputError(
                f"the zip of {name} has an entry that leaves its folder",
                found=repr(info.filename),
                hint="do not trust this file",
            )
    total = sum(info.file_size for info in members)
    if total > min(LARGEST_UNPACKED, RATIO_FREE + LARGEST_RATIO * archive.stat().st_size):
        raise InputError(
            f"the zip of {name} expands beyond reason",
            found=f"{total} bytes out of {archive.stat().st_size}",
            hint="do not trust this file",
        )
    free = shutil.disk_usage(archive.parent).free
    if total > free:
        raise InputError(
            f"the disk is too small for {name}",
            found=f"{free} bytes free, {total} needed",
            hint="name a data folder on another disk",
        )


def _move(unpacked: Path, destination: Path) -> None:
    try:
        unpacked.rename(destination)
    except OSError:
        if not is_dataset(destination):  # else another process was faster
            raise


def _sweep(folder: Path) -> None:
    """Remove what a process that was killed long ago left behind."""
    for path in folder.glob(f"{_SCRATCH}*"):
        with contextlib.suppress(FileNotFoundError):  # its owner may be removing it just now
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)

"""Settings in a file: flat TOML whose keys are the options' names with underscores."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from falsify_adapters.errors import UsageError


def read_config(path: str | Path, allowed: Collection[str]) -> dict[str, Any]:
    """Read a settings file.

    Parameters
    ----------
    path : path
        A TOML file without tables.
    allowed : collection of str
        The keys it may have.

    Returns
    -------
    dict
        Key to text, number, true/false, or list of these.

    Raises
    ------
    UsageError
        If the file cannot be read, is not TOML, or has a key or a kind of value that means
        nothing here.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "gate.toml"
    >>> _ = path.write_text('dataset = ["nfcorpus"]\\ntau = 0.1')
    >>> read_config(path, allowed={"dataset", "tau"})
    {'dataset': ['nfcorpus'], 'tau': 0.1}
    >>> _ = path.write_text("n-boot = 2000")
    >>> read_config(path, allowed={"n_boot"})
    Traceback (most recent call last):
    falsify_adapters.errors.UsageError: gate.toml: unknown key; found: n-boot; hint: did you mean \
n_boot?
    >>> folder.cleanup()
    """
    file = Path(path)
    try:
        settings = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UsageError(
            f"the settings file {path} cannot be read", found=error.strerror or str(error)
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{file.name} is not UTF-8", found=str(error), hint="save it as UTF-8"
        ) from error
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UsageError(
            f"{file.name} is not TOML",
            found=str(error),
            hint='a line reads: key = 0.05, key = "text" or key = ["a", "b"]',
        ) from error
    for key, value in settings.items():
        if key not in allowed:
            raise UsageError(f"{file.name}: unknown key", found=key, hint=_hint(key, allowed))
        if not _plain(value) and not (isinstance(value, list) and all(map(_plain, value))):
            raise UsageError(
                f"{file.name}: {key} has a value of a kind that no option takes",
                found=repr(value),
                hint="text, numbers, true, false, and lists of these; tables are not used",
            )
    return settings


def _plain(value: object) -> bool:
    return isinstance(value, (str, bool, int, float))


def _hint(key: str, allowed: Collection[str]) -> str:
    near = difflib.get_close_matches(key.replace("-", "_").lower(), sorted(allowed), n=1)
    return f"did you mean {near[0]}?" if near else f"known keys are {', '.join(sorted(allowed))}"

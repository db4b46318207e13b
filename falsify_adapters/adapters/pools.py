"""The documents of a corpus by name, as falsify-eval's `--pool` takes them."""

from __future__ import annotations

from falsify_adapters.adapters.records import as_ids
from falsify_adapters.errors import InputError
from falsify_adapters.readers.jsons import load_json
from falsify_adapters.readers.source import Source, label_of, open_content, open_source


def read_pool(source: Source) -> list[str]:
    r"""Read document ids: one per line, or a JSON list.

    Parameters
    ----------
    source : str, Path or binary file
        A path, ``"-"`` for standard input, or a file opened in binary mode.

    Returns
    -------
    list of str
        The ids, each once, in the order of the file.

    Raises
    ------
    InputError
        If the file cannot be read or holds no id.

    Examples
    --------
    >>> import io
    >>> read_pool(io.BytesIO(b"d1\nd2\n")), read_pool(io.BytesIO(b'["d1", "d 2"]'))
    (['d1', 'd2'], ['d1', 'd 2'])
    """
    stream, _, ours = open_source(source)
    try:
        content = open_content(stream, label_of(source))
        data = content.everything()
    finally:
        if ours:
            stream.close()
    if content.encoding == "binary":
        raise InputError(f"{content.label} is a parquet file", hint="write one id per line")
    if data.lstrip().startswith(b"["):
        ids = as_ids(load_json(data, content.label), "the list", content.label)
    else:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{content.label} is not valid UTF-8", found=str(error)[:80]) from None
        # only a line feed ends a line: an id may hold any other separator
        ids = [line.strip() for line in text.split("\n") if line.strip()]
    if not ids:
        raise InputError(f"{content.label} names no document")
    return list(dict.fromkeys(ids))

"""Small pieces of text that the reports share: numbers, names, sentences, plain ASCII."""

from __future__ import annotations

import math
import unicodedata

#: What our own sentences use beyond ASCII, and what stands for it in plain ASCII.
ASCII = str.maketrans(
    {
        "…": "...",
        "·": "-",
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "\N{MULTIPLICATION SIGN}": "x",
        "≥": ">=",
        "≤": "<=",
        "±": "+-",
        "→": "->",
        "\N{LEFT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    }
)


def printable(text: str, *, keep: str = "") -> str:
    r"""Return `text` in which nothing can move the cursor, change colours or turn the direction.

    Ids and file names come from anywhere; a terminal acts on control characters. The characters
    in `keep` are left as they are.

    Examples
    --------
    >>> printable("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(ascii(char)[1:-1] if _acts(char) and char not in keep else char for char in text)


def _acts(char: str) -> bool:
    """Say whether a character is not only seen.

    Category C is control, format (right-to-left marks), surrogates and unassigned; Zl and Zp end
    a line and a paragraph.
    """
    category = unicodedata.category(char)
    return category[0] == "C" or category in ("Zl", "Zp")


def plain_ascii(text: str) -> str:
    r"""Return `text` in ASCII: our own signs spelled out, other characters as escapes.

    Examples
    --------
    >>> plain_ascii("delta ≥ 0.05 · café")
    'delta >= 0.05 - caf\\xe9'
    """
    return text.translate(ASCII).encode("ascii", errors="backslashreplace").decode("ascii")


def shorten(text: str, limit: int) -> str:
    """Return `text` cut in its middle to `limit` characters.

    Examples
    --------
    >>> shorten("a_very_long_system_name.v2", 13)
    'a_very…ame.v2'
    """
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def number(value: float, digits: int = 3, *, sign: bool = False) -> str:
    """Return a number with fixed digits, and never ``-0.000`` or ``nan``.

    Examples
    --------
    >>> number(-0.0001), number(0.25, sign=True), number(float("nan"))
    ('0.000', '+0.250', 'n/a')
    """
    if not math.isfinite(value):
        return "n/a"
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        return text.lstrip("-")
    return f"+{text}" if sign and value > 0 else text


def share(value: float) -> str:
    """Return a share as per cent without needless digits.

    Examples
    --------
    >>> share(0.95), share(0.995)
    ('95%', '99.5%')
    """
    return f"{100 * value:.4g}%"


def sentence(text: str) -> str:
    """Return `text` as a printable sentence: a capital, a full stop.

    Examples
    --------
    >>> sentence("the queries cannot decide"), sentence("Why?")
    ('The queries cannot decide.', 'Why?')
    """
    text = printable(text.strip())
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."

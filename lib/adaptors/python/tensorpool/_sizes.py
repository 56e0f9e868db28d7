"""Parser of sizes such as "2GiB"."""

from __future__ import annotations

import operator
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import SupportsIndex, Union

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SIZE = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(%s)?" % "|".join(_UNITS)
_END = 2**63
_EXPECTED = "expected bytes above 0, as a number or as a text such as '512MiB' or '2GiB'"


def bytes_of(size: Union[SupportsIndex, str]) -> int:
    """Returns the bytes of a number, or of a text in the form of tensorpool's environment
    variables. Raises TypeError or ValueError for anything else, and for values outside 1 to 2**63 -
    1."""
    count = _of_text(size) if isinstance(size, str) else _of_number(size)
    if not 0 < count < _END:
        raise ValueError(f"tensorpool: limit: {size!r}, {_EXPECTED}")
    return count


def _of_text(text: str) -> int:
    from decimal import Decimal

    match = re.fullmatch(_SIZE, text)
    if match is None:
        raise ValueError(f"tensorpool: limit: {text!r} is no size, {_EXPECTED}")
    number, unit = match.groups()
    return int(Decimal(number) * 1024 ** _UNITS.index(unit or "B"))


def _of_number(size: SupportsIndex) -> int:
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(f"tensorpool: limit: {size!r} is of type {type(size).__name__}, {_EXPECTED}")
    return operator.index(size)

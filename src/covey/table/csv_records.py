"""Where the records of CSV text begin and end, and quotes that are not where RFC 4180 has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.errors import InputError

CHUNK = 2**18  # bytes that fit the processor's cache

_QUOTE, _LINE = 34, 10


def record_end(data: bytes, start: int) -> int:
    """Where the record that starts here ends, its line feed included; −1 if it does not end."""
    end = data.find(b"\n", start)
    while end >= 0 and data.count(b'"', start, end) % 2:
        end = data.find(b"\n", end + 1)
    return end + 1 if end >= 0 else -1


def last_record_end(data: bytes) -> int:
    """Where the last whole record ends; 0 if there is none. The data starts with a record."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    whole = np.frombuffer(data, dtype=np.uint8)
    quotes, lines = np.flatnonzero(whole == _QUOTE), np.flatnonzero(whole == _LINE)
    outside = lines[np.searchsorted(quotes, lines) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


@dataclass(frozen=True)
class Shape:
    """How a block of records looks."""

    records: int
    short: int
    long: int
    longest: int  # bytes of the longest record


def scan(data: bytes, width: int, separator: int, where: str, line: int) -> Shape:
    """Count records and fields, and refuse quotes that are not where RFC 4180 has them, naming the line.

    The reader that follows is fast and lenient: it would let one open quote swallow the rest of the block.
    """
    whole = np.frombuffer(data, dtype=np.uint8)
    quoted = b'"' in data
    quotes_seen, fields_before, start = 0, 0, 0
    records = short = long = longest = 0
    for begin in range(0, len(data), CHUNK):
        part = whole[begin : begin + CHUNK]
        marks = np.flatnonzero((part == _LINE) | (part == separator))
        if quoted:
            quotes = np.flatnonzero(part == _QUOTE)
            _check_quotes(data, whole, begin + quotes, quotes_seen, separator, where, line)
            marks = marks[(np.searchsorted(quotes, marks) + quotes_seen) % 2 == 0]
            quotes_seen += len(quotes)
        ends = np.flatnonzero(part[marks] == _LINE)
        if len(ends):
            fields = np.diff(ends, prepend=-1)
            fields[0] += fields_before
            short += int(np.count_nonzero(fields < width))
            long += int(np.count_nonzero(fields > width))
            places = begin + marks[ends]
            longest = max(longest, int(np.diff(places, prepend=start - 1).max()))
            start, fields_before = int(places[-1]) + 1, len(marks) - 1 - int(ends[-1])
            records += len(ends)
        else:
            fields_before += len(marks)
    if quotes_seen % 2:
        raise _unbalanced(data, data.rfind(b'"'), where, line)
    if start < len(data):  # the last line has no end
        records += 1
        short += fields_before + 1 < width
        long += fields_before + 1 > width
        longest = max(longest, len(data) - start)
    return Shape(records, short, long, longest)


def _check_quotes(  # everything that the message needs, and where the quotes are
    data: bytes, whole: Any, quotes: Any, seen: int, separator: int, where: str, line: int
) -> None:
    """Opening quotes stand at the start of a field, closing ones at its end; a doubled one counts as both."""
    neighbours = (_QUOTE, separator, _LINE)
    opening, closing = quotes[seen % 2 :: 2], quotes[1 - seen % 2 :: 2]
    before, after = whole[np.maximum(opening - 1, 0)], whole[np.minimum(closing + 1, len(whole) - 1)]
    bad_open = opening[(opening > 0) & ~np.isin(before, neighbours)]
    bad_close = closing[(closing + 1 < len(whole)) & ~np.isin(after, neighbours)]
    if len(bad_open) and (not len(bad_close) or bad_open[0] < bad_close[0]):
        raise _unbalanced(data, int(bad_open[0]), where, line)
    if len(bad_close):
        raise _unbalanced(data, data.rfind(b'"', 0, int(bad_close[0])), where, line)


def _unbalanced(data: bytes, place: int, where: str, line: int) -> InputError:
    line += data.count(b"\n", 0, max(place, 0))
    return InputError(
        f"{where} has an unbalanced quote in line {line}. Quote the whole field and double the quotes in it."
    )

"""Divides JSON that is written on several lines, such as an array, into its objects."""

import json
import re
from collections.abc import Iterator, Sequence

NOT_BETWEEN_OBJECTS = re.compile(r"[^\s,\[\]]")


def objects(number: int, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each object of an array, or of several objects.

    `number` is the number of the first line. JSON that is not valid, such as an array that is cut off, is yielded as it
    is.
    """
    text = "\n".join(lines)
    decoder = json.JSONDecoder()
    first = number
    end = 0
    while beginning := NOT_BETWEEN_OBJECTS.search(text, end):
        begin = beginning.start()
        number += text.count("\n", end, begin)
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            end = len(text)
        yield number, text[begin:end]
        number += text.count("\n", begin, end)
    is_cut_off = text.lstrip().startswith("[") and not text.rstrip().endswith("]")
    if is_cut_off:
        yield first, lines[0]

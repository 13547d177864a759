"""Reads pairs from Python objects: iterables of pairs or of mappings, and tables of pandas and datasets.

The packages of these tables are not imported: a table is recognised by its attributes.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from transduce.system.errors import UserError
from transduce.text.jsonl import PAIR_KEYS, pair_keys, pair_object
from transduce.text.languages import LANGUAGE_CODE
from transduce.text.pairs import Origin, Pair


def read_records(
    records: Any, languages: tuple[str, str], name: str
) -> tuple[tuple[str, str], Iterator[Pair]]:
    """The languages of records, and their pairs, whose origins are `name` and the numbers of the records.

    A record is a pair of texts, or a dictionary like a line of a .jsonl file. A missing text is empty. If `languages`
    are empty, they are the language codes among the keys of the first record, if there are two. Raises UserError if
    there are no records and, while the pairs are read, for a record without two texts.
    """
    rows = _rows(records)
    first = next(rows, None)
    if first is None:
        raise UserError(f"{name} has no pairs.")
    codes = _languages(first)
    if not any(languages) and len(codes) == 2:
        languages = (codes[0], codes[1])
    numbered = enumerate(chain([first], rows), 1)
    return languages, (_pair(row, languages, Origin(name, number)) for number, row in numbered)


def _pair(record: Any, languages: tuple[str, str], origin: Origin) -> Pair:
    """The pair in a record. Raises UserError if the record does not hold two texts."""
    place = f"{origin.file}:{origin.line}"
    if isinstance(record, tuple | list):
        record = dict(zip(PAIR_KEYS[0], record, strict=False))
    texts = pair_object(record, place)
    source, target = pair_keys(texts, languages if all(languages) else PAIR_KEYS[0], place)
    return Pair(texts[source] or "", texts[target] or "", origin)


def _rows(records: Any) -> Iterator[Any]:
    """The records of an iterable, of a table, or of several tables."""
    if hasattr(records, "itertuples"):  # of pandas, whose iterator yields the names of the columns
        texts = records.astype(object).where(records.notna(), None)
        for values in texts.itertuples(index=False, name=None):
            yield dict(zip(records.columns, values, strict=True))
        return
    for record in records:
        is_table = hasattr(record, "itertuples") or hasattr(record, "column_names")
        yield from _rows(record) if is_table else [record]


def _languages(record: Any) -> list[str]:
    """The language codes among the keys of a record."""
    keys = pair_object(record, "") if isinstance(record, dict) else ()
    return [key for key in keys if LANGUAGE_CODE.fullmatch(str(key))]

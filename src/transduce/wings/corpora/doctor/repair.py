"""Removes or repairs the faulty pairs of a corpus after its audit."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice, repeat, tee, zip_longest
from pathlib import Path

from transduce.system.errors import UserError
from transduce.system.files import write_file
from transduce.text import jsonl
from transduce.text.encoding_errors import UNDECODED, readable
from transduce.text.pairs import Pair, are_line_aligned, read_pairs
from transduce.text.plain import keep_earlier, read_lines, suffixes, without_byte_order_mark
from transduce.text.rules import EMPTY, ENCODING, MEANINGS, MISALIGNED
from transduce.text.tsv import SAMPLE_LINES, text_columns
from transduce.wings.corpora.doctor.audit import Audit, Verdict
from transduce.wings.corpora.doctor.windows import as_windows
from transduce.wings.rules.corpus_faults import repaired as repaired_text
from transduce.wings.rules.misalignment import at_offsets

# A lone surrogate that does not stand for an undecoded byte.
HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
LINE_BY_LINE = (".tsv", ".tab", ".txt", ".jsonl")  # bilingual formats with one pair per line


def check_form(files: Sequence[str], outputs: Sequence[str]) -> None:
    """Raise UserError unless the outputs have the format of the corpus or are a single .jsonl file."""
    forms = [suffixes(file)[0] for file in files]
    if len(outputs) == 1 and suffixes(outputs[0])[0] == ".jsonl":
        return
    if are_line_aligned(files):
        if len(outputs) != 2:
            raise UserError(
                "The corpus has two files.",
                "Name two outputs, or one that ends in .jsonl.",
                "fix",
            )
        return
    is_kept = len(files) == 1 and forms[0] in LINE_BY_LINE
    if not is_kept or [suffixes(output)[0] for output in outputs] != forms:
        wanted = forms[0] if is_kept else ".jsonl"
        raise UserError(
            "The repaired corpus is one file.",
            f"Name one output that ends in {wanted}.",
            "fix",
        )


def write_repaired(
    files: Sequence[str],
    languages: tuple[str, str],
    audit: Audit,
    outputs: Sequence[str],
    lists: Sequence[Path],
    repairs: Sequence[Sequence[str]] = ((), ()),
) -> int:
    """Read a corpus again, and write the pairs without faults to `outputs`.

    `repairs` are faults of the whole corpus to repair in the sources and in the targets. Returns how many pairs are
    left out because the repair leaves a side blank.

    `lists` are the files for the removed pairs and, if there are any, for the repaired pairs. In an output of the same
    bilingual format, other columns and JSON keys keep their undecoded bytes. Copies of earlier outputs are kept.
    """
    keeps_lines = len(files) == 1 and suffixes(files[0])[0] == suffixes(outputs[0])[0]
    lines, columns = _lines(files[0]) if keeps_lines else (repeat(""), (0, 1))
    with ExitStack() as stack:
        kept = [stack.enter_context(write_file(Path(each).resolve())) for each in outputs]
        left_out, *repaired = [stack.enter_context(write_file(each)) for each in lists]
        pairs = _pairs(files, languages, audit)
        codes = audit.rules.languages
        blank = 0
        for (pair, verdict), line in zip(pairs, lines, strict=keeps_lines):
            if verdict.rule:
                left_out.write(_as_json(tuple(MEANINGS)[verdict.rule - 1], pair))
                continue
            texts = [
                repaired_text(pair.source, repairs[0], codes[0]),
                repaired_text(pair.target, repairs[1], codes[1]),
            ]
            if not all(map(str.strip, texts)):
                left_out.write(_as_json(EMPTY, pair))
                blank += 1
                continue
            is_changed = verdict.repaired or texts != [*pair[:2]]
            pair = pair._replace(source=texts[0], target=texts[1])
            if verdict.repaired:
                rule = MISALIGNED if verdict.offset else ENCODING
                repaired[0].write(_as_json(rule, pair, offset=verdict.offset))
            if keeps_lines:
                whole = (
                    _with_texts(line, pair, files[0], languages, columns) if is_changed else line
                )
                kept[0].write(f"{whole}\n".encode(errors="surrogateescape"))
            elif len(kept) == 2:
                for file, text in zip(kept, pair[:2], strict=True):
                    file.write(f"{text}\n".encode())
            else:
                record = dict(zip(languages, pair[:2], strict=True))
                kept[0].write(f"{json.dumps(record, ensure_ascii=False)}\n".encode())
        for output, file in zip(outputs, kept, strict=True):
            keep_earlier(Path(output).resolve(), file)
    return blank


def _lines(file: str) -> tuple[Iterator[str], tuple[int, int]]:
    """The lines of a bilingual file, with a pair each, and the columns of the texts of a .tsv file."""
    if suffixes(file)[0] == ".jsonl":
        objects = jsonl.read_objects(file, lenient=True)
        return (text.replace("\n", " ") for _, text in objects), (0, 1)
    lines = without_byte_order_mark(read_lines(file, lenient=True))
    sample = list(islice(lines, SAMPLE_LINES))
    return chain(sample, lines), text_columns(sample)


def _pairs(
    files: Sequence[str], languages: tuple[str, str], audit: Audit
) -> Iterator[tuple[Pair, Verdict]]:
    """Yield each pair, realigned if possible, with its verdict."""
    sources, targets = tee(read_pairs(files, languages, lenient=True))
    partners = at_offsets(targets, (verdict.offset for verdict in audit.verdicts))
    for pair, other, verdict in zip_longest(sources, partners, audit.verdicts):
        if pair is None or other is None or verdict is None:
            raise UserError(
                f"{' or '.join(files)} changed during the check.", "Run the check again."
            )
        decode = readable if verdict.rule else as_windows
        yield Pair(decode(pair.source), decode(other.target), pair.origin), verdict


def _with_texts(
    line: str, pair: Pair, file: str, languages: tuple[str, str], columns: tuple[int, int]
) -> str:
    """A line of a bilingual file with the texts of `pair`; `columns` are those of the texts of a .tsv file."""
    if suffixes(file)[0] == ".jsonl":
        return with_target(line, pair.target, languages, pair.source)
    cells = line.split("\t")
    cells += [""] * (columns[1] + 1 - len(cells))  # a line without a TAB may get a target
    for column, text in zip(columns, pair[:2], strict=True):
        cells[column] = text
    return "\t".join(cells)


def with_target(line: str, target: str, languages: tuple[str, str], source: str = "") -> str:
    """Replace the target text in a JSON line, and the source text unless `source` is empty."""
    outer = json.loads(line)
    record = jsonl.pair_object(outer, "")
    keys = jsonl.pair_keys(record, languages, "")
    record |= {keys[0]: source or record[keys[0]], keys[1]: target}
    # Bytes of other keys stay bytes.
    halves = HALF if UNDECODED.search(line) else jsonl.LONE_SURROGATE
    return halves.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(outer, ensure_ascii=False))


def _as_json(rule: str, pair: Pair, **more: int) -> bytes:
    """A JSON line; the key `offset` says how many lines the target stood below its source."""
    texts = {"source": pair.source, "target": pair.target}
    fields = {"rule": rule, **pair.origin._asdict(), **more, **texts}
    return f"{json.dumps(fields, ensure_ascii=False)}\n".encode()

"""Removes or repairs the faulty pairs of a corpus after its audit."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import repeat, tee, zip_longest
from pathlib import Path

from transduce.system.errors import UserError
from transduce.system.files import write_file
from transduce.text import jsonl
from transduce.text.encoding_errors import readable
from transduce.text.pairs import Pair, are_line_aligned, read_pairs
from transduce.text.plain import keep_earlier, read_lines, suffixes, without_byte_order_mark
from transduce.text.rules import ENCODING, MEANINGS, MISALIGNED
from transduce.wings.corpora.doctor.audit import Audit, Verdict
from transduce.wings.corpora.doctor.windows import as_windows
from transduce.wings.rules.misalignment import at_offsets

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
) -> None:
    """Read a corpus again, and write the pairs without faults to `outputs`.

    `lists` are the files for the removed pairs and, if there are any, for the repaired pairs. In an output of the same
    bilingual format, other columns and JSON keys keep their undecoded bytes. Copies of earlier outputs are kept.
    """
    keeps_lines = len(files) == 1 and suffixes(files[0])[0] == suffixes(outputs[0])[0]
    lines = (
        without_byte_order_mark(read_lines(files[0], lenient=True)) if keeps_lines else repeat("")
    )
    with ExitStack() as stack:
        kept = [stack.enter_context(write_file(Path(each).resolve())) for each in outputs]
        left_out, *repaired = [stack.enter_context(write_file(each)) for each in lists]
        pairs = _pairs(files, languages, audit)
        for (pair, verdict), line in zip(pairs, lines, strict=keeps_lines):
            if verdict.rule:
                left_out.write(_as_json(tuple(MEANINGS)[verdict.rule - 1], pair))
                continue
            if verdict.repaired:
                rule = MISALIGNED if verdict.offset else ENCODING
                repaired[0].write(_as_json(rule, pair, offset=verdict.offset))
            if keeps_lines:
                whole = _with_texts(line, pair, files[0], languages) if verdict.repaired else line
                kept[0].write(f"{whole}\n".encode(errors="surrogateescape"))
            elif len(kept) == 2:
                for file, text in zip(kept, pair[:2], strict=True):
                    file.write(f"{text}\n".encode())
            else:
                texts = dict(zip(languages, pair[:2], strict=True))
                kept[0].write(f"{json.dumps(texts, ensure_ascii=False)}\n".encode())
        for output, file in zip(outputs, kept, strict=True):
            keep_earlier(Path(output).resolve(), file)


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


def _with_texts(line: str, pair: Pair, file: str, languages: tuple[str, str]) -> str:
    """A line of a bilingual file with the texts of `pair`."""
    if suffixes(file)[0] == ".jsonl":
        return jsonl.with_target(line, pair.target, languages, pair.source)
    return "\t".join([pair.source, pair.target, *line.split("\t")[2:]])


def _as_json(rule: str, pair: Pair, **more: int) -> bytes:
    """A JSON line; the key `offset` says how many lines the target stood below its source."""
    texts = {"source": pair.source, "target": pair.target}
    fields = {"rule": rule, **pair.origin._asdict(), **more, **texts}
    return f"{json.dumps(fields, ensure_ascii=False)}\n".encode()

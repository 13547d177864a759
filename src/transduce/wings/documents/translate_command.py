"""`transduce translate` for documents."""

import sys
from pathlib import Path

from transduce.commands.translate import Call, Flags
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.text.plain import STANDARD_OUTPUT, suffixes, write_parts
from transduce.wings.documents.document import translate_document


def run(call: Call) -> None:
    """Translate a document."""
    call.check_output()
    if suffixes(call.input)[1]:
        raise UserError(f"{call.input} is a compressed document.", "Decompress it first.")
    if call.format.is_json or call.format.sentences:
        raise UserError(
            f"{call.input} is a document.",
            "Leave out --json, --alignment, --n-best and --sentences.",
        )
    content = _read(call.input)
    with call.translator() as translator:
        document = translate_document(
            translator,
            content,
            call.input,
            *translator.require_direction(),
            redo=call.redo,
            glossary=call.read_glossary(translator),
        )
        _write(call.output, document.content)
    place = "" if call.output == STANDARD_OUTPUT else f" → {call.output}"
    log(f"{count(document.texts, 'text')} translated{place}")
    if not document.texts and not call.redo:
        left_out = "Fuzzy messages and approved texts are left out"
        log(
            f"There is nothing to translate. {left_out}; --redo also translates other translated texts."
        )
    flags = Flags()
    for line, text_flags in document.flagged:
        flags.add(text_flags, line)
    flags.log()


def _read(file: str) -> bytes:
    """The content of a file. Raises UserError if the file can't be read."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror or error}.") from None


def _write(output: Path, content: bytes) -> None:
    """Write bytes to a file, or to standard output for "-". Raises UserError if the file can't be written."""
    if output == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        write_parts(output, [content], keep=True)

"""`transduce translate` for documents."""

import sys
from collections.abc import Sequence
from pathlib import Path

from transduce.commands.translate import MANY_LINES, Call, Flags
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.text.identify import warn_of_language
from transduce.text.plain import STANDARD_OUTPUT, suffixes, write_parts
from transduce.wings.documents.document import translate_document

WITH_STATES = (
    ".po",
    ".pot",
    ".xlf",
    ".xliff",
    ".xcstrings",
)  # formats whose files say the state of a translation


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
    if call.needs_review and Path(call.input).suffix.lower() not in WITH_STATES:
        log(
            f"{call.input} can't say which texts need a review: only PO and XLIFF files and string catalogs can."
        )
    content = _read(call.input)
    with call.translator() as translator:
        source, target = translator.require_direction()

        def examine(texts: Sequence[str]) -> None:
            if len(texts) >= MANY_LINES:
                warn_of_language(f"the texts in {call.input}", texts, source, [target])

        document = translate_document(
            translator,
            content,
            call.input,
            source,
            target,
            redo=call.redo,
            needs_review=call.needs_review,
            options=call.translation_options(translator),
            examine=examine,
        )
        _write(call.output, document.content)
    for note in document.notes:
        log(note)
    place = "" if call.output == STANDARD_OUTPUT else f" → {call.output}"
    log(f"{count(document.texts, 'text')} translated{place}")
    if not document.texts and not call.redo:
        left_out = "Fuzzy messages, approved texts and texts in other languages are left out"
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

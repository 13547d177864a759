"""Reads each line of a plain text file as one text."""

from transduce.text.formats import DocumentFile
from transduce.wings.documents.document import Document, Slot, decode

EDGE_CHARACTERS = " \t\r\ufeff\u00a0"


def read_text(file: DocumentFile) -> Document:
    """The non-blank lines, without leading and trailing spaces."""
    text, codec = decode(file.content, file.name)
    slots = list[Slot]()
    begin = 0  # begin: where the current line begins
    for number, line in enumerate(text.split("\n"), 1):
        inner = line.strip(EDGE_CHARACTERS)
        if inner.strip():
            first = begin + len(line) - len(line.lstrip(EDGE_CHARACTERS))
            slots.append(Slot(inner, inner, number, first, first + len(inner), str))
        begin += len(line) + 1
    return Document(file.name, text, codec, tuple(slots))

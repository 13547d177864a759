"""Plain text: every line is a text of one or more sentences."""

from transduce.wings.documents.document import Document, Slot, decode

BLANKS = " \t\r\ufeff\u00a0"


def read_text(content: bytes, name: str) -> Document:
    """The lines that aren't blank, without the blanks around them."""
    text, codec = decode(content, name)
    slots, at = list[Slot](), 0
    for number, line in enumerate(text.split("\n"), 1):
        inner = line.strip(BLANKS)
        if inner.strip():
            begin = at + len(line) - len(line.lstrip(BLANKS))
            slots.append(Slot(inner, inner, number, begin, begin + len(inner), str))
        at += len(line) + 1
    return Document(name, text, codec, tuple(slots))

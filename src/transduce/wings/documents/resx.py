"""Reads .NET's .resx and .resw files."""

from functools import partial

from transduce.inline.markup import attribute
from transduce.text.formats import DocumentFile
from transduce.wings.documents.keyed import KeyedFile, Message
from transduce.wings.documents.xml import UnitReader, as_content, decode_xml, source_text

CODE_NAME = ">>"  # begins the name of a value that a form's designer reads


def read_resx(file: DocumentFile) -> KeyedFile:
    """The values of texts, without comments and values of other types."""
    content, codec = decode_xml(file.content, file.name)
    messages = list[Message]()
    for unit in UnitReader(file.name, "root", ("data",), 1).read([file.content]):
        name = attribute(unit.opening, "name") or ""
        is_typed = attribute(unit.opening, "type") or attribute(unit.opening, "mimetype")
        values = [child for child in unit.children if child.name == "value"]
        if is_typed or not values or name.startswith(CODE_NAME):
            continue
        raw = unit.text(values[0])
        text, kind = source_text(raw, preserve=True)
        begin, end, *_ = unit.inside(values[0])
        write = partial(_content, raw)
        messages.append(Message(name, text, begin, end, write, kind._replace(message=True)))
    return KeyedFile(content, codec, messages)


def _content(raw: str, translation: str) -> str:
    return as_content(translation, raw)

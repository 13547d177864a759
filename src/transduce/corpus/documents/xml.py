"""XML that is safe to read: well-formed, in a known encoding, without entities of its own."""

import re
from typing import Any
from xml.parsers import expat

from transduce.corpus.documents.document import decode
from transduce.errors import UserError

DECLARED = re.compile(rb"\A<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)[\"']")
WITHOUT_MARK = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}  # UTF-16 by its first bytes


def read_xml(content: bytes, name: str) -> tuple[str, str]:
    """The characters of a file and its codec; raises UserError that names the line that isn't XML or declares a type.

    Nothing outside of the file is ever looked at.
    """
    declared = DECLARED.search(content)
    codec = WITHOUT_MARK.get(content[:2]) or (declared[1].decode() if declared else None)
    text, codec = decode(content, name, codec)
    parser = expat.ParserCreate("utf-8")

    def refuse(*_: Any) -> None:
        raise UserError(
            f"{name}, line {parser.CurrentLineNumber} declares a document type of its own, which can make a file "
            "endless or read others; take the declaration out."
        )

    def refuse_inner(_name: str, _system: str | None, _public: str | None, inner: bool) -> None:
        if inner:
            refuse()

    parser.StartDoctypeDeclHandler = refuse_inner
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        raise UserError(f"{name}, line {error.lineno}: this is not well-formed XML: {what}.") from None
    return text, codec

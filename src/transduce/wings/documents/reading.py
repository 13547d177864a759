"""A file's texts, by the suffix of its name."""

from pathlib import PurePath

from transduce.system.errors import UserError
from transduce.wings.documents.document import Document
from transduce.wings.documents.html import read_html
from transduce.wings.documents.lines import read_text
from transduce.wings.documents.po import read_po
from transduce.wings.documents.subtitles import read_subtitles
from transduce.wings.documents.tmx import read_tmx_document
from transduce.wings.documents.xliff import read_xliff

SUFFIXES = (".txt", ".po", ".pot", ".xlf", ".xliff", ".tmx", ".html", ".htm", ".xhtml", ".srt", ".vtt")


def read_document(content: bytes, name: str, source: str, target: str, *, redo: bool = False) -> Document:
    """What is to be translated in a file, whose name's suffix says its format; languages are given by their codes.

    redo: also what is translated already, in a file that holds both languages. Raises UserError for an unknown format
    and for what can't be read.
    """
    match PurePath(name).suffix.lower():
        case ".txt":
            return read_text(content, name)
        case ".po" | ".pot":
            return read_po(content, name, target, redo=redo)
        case ".srt" | ".vtt":
            return read_subtitles(content, name)
        case ".xlf" | ".xliff":
            return read_xliff(content, name, source, target, redo=redo)
        case ".tmx":
            return read_tmx_document(content, name, source, target, redo=redo)
        case ".html" | ".htm" | ".xhtml":
            return read_html(content, name)
        case suffix:
            kind = f"its suffix {suffix}" if suffix else "its name has no suffix, which"
            raise UserError(f"{name} can't be translated: {kind} is none of {', '.join(SUFFIXES)}.")

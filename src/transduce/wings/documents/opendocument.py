"""Reads OpenDocument texts and presentations (.odt, .odp).

A paragraph contains characters and elements: spans and links around characters, and notes, fields, drawings and
bookmarks between them, which stay. Readings above characters (ruby) are left out of translations.
"""

import re
from collections.abc import Collection, Iterator

from transduce.inline.markup import attribute
from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile
from transduce.wings.documents.archive import OPEN_WITHOUT_PASSWORD, Archive, ArchiveDocument
from transduce.wings.documents.paragraphs import Token, TokenKind, read_paragraphs
from transduce.wings.documents.xml_tree import CDATA_BEGIN, Node, characters, raw_name

ODF_MANIFEST = "META-INF/manifest.xml"
DELETED_TEXTS = "text:tracked-changes"
OFFICE_COMMENT = "office:annotation"
PAIRED_ELEMENTS = ("text:a", "text:meta", "loext:content-control")
LINE_PARTS = ("text:tab", "text:line-break")
NOT_SHOWN = ("text:soft-page-break", "?")
SLIDE_EDGES = ("presentation:header-decl", "presentation:footer-decl")
MAX_BLANKS = 100
COLLAPSED_BLANKS = re.compile(r"[ \t\r\n]+")  # not those that don't break
IGNORED_BLANKS = re.compile("(?<= ) +|\\A {2,}")


def read_odt(file: DocumentFile) -> ArchiveDocument:
    """The paragraphs of a text, its headers, footers, notes and text boxes; not its comments."""
    return _read(file, "content", "styles")  # the styles have the headers and footers


def read_odp(file: DocumentFile) -> ArchiveDocument:
    """The paragraphs of the slides and their notes, headers and footers; not those of master pages."""
    return _read(file, "content")


def _read(file: DocumentFile, *members: str) -> ArchiveDocument:
    archive = Archive(file.content, file.name)
    archive.require("content.xml", "an OpenDocument file")
    if ODF_MANIFEST in archive.names and b"encryption-data" in archive.read(ODF_MANIFEST):
        raise UserError(f"{file.name} is protected by a password.", OPEN_WITHOUT_PASSWORD)
    documents = {}
    notes: tuple[str, ...] = ()
    for member in archive.matching(re.compile(rf"(?:{'|'.join(members)})\.xml")):
        text, name, codec = archive.read_xml(member)
        documents[member] = read_paragraphs(text, name, codec, OpenDocument(text))
        if f"<{DELETED_TEXTS}" in text:
            notes = (f"{file.name} has tracked changes. Deleted texts are not translated.",)
    return ArchiveDocument(archive, documents, notes)


class OpenDocument:
    """The syntax of paragraphs in OpenDocument files."""

    skipped = (DELETED_TEXTS, OFFICE_COMMENT)

    def __init__(
        self, text: str, paragraphs: Collection[str] = ("text:p", "text:h", *SLIDE_EDGES)
    ) -> None:
        self._text = text
        self.paragraphs = paragraphs
        self._tag = "text:"  # the prefix in the file

    def tokens(self, paragraph: Node) -> list[Token]:
        """The tokens of a paragraph."""
        if paragraph.name not in SLIDE_EDGES:
            self._tag = raw_name(self._text, paragraph).rpartition(":")[0] + ":"
        return list(self._inside(paragraph, "", None))

    def write(self, text: str, style: str) -> str:
        """A text in its spans; readers ignore a blank behind another, and at the beginning, unless it is an element."""
        tag = self._tag

        def element(blanks: re.Match[str]) -> str:
            return f'<{tag}s {tag}c="{len(blanks[0])}"/>'

        return f"{style}{IGNORED_BLANKS.sub(element, text)}{self._closing(style)}"

    def _closing(self, style: str) -> str:
        return f"</{self._tag}span>" * style.count("<")

    def _inside(self, parent: Node, style: str, span: tuple[int, int] | None) -> Iterator[Token]:
        """The tokens in an element, for `style`, the opening tags of the spans around it.

        `span` is the place of the outermost of these spans.
        """
        for node in parent.children:
            raw = self._text[node.begin : node.end]
            opening = self._text[node.begin : node.content_begin]
            place = span or (node.begin, node.end)
            if not node.name or raw.startswith(CDATA_BEGIN):
                text = characters(self._text, Node("", *place, *place, [node]))
                yield Token("text", *place, COLLAPSED_BLANKS.sub(" ", text), style)
            elif node.name == "text:s":
                count = attribute(raw, "text:c") or "1"
                blanks = int(count) if count.isascii() and count.isdigit() and len(count) < 4 else 1
                yield Token("text", *place, " " * min(blanks, MAX_BLANKS), style)
            elif node.name == "text:span":
                yield from self._inside(node, style + opening, place)
            elif node.name == "text:ruby":
                for base in node.children:
                    if base.name == "text:ruby-base":
                        yield from self._inside(base, style, place)
            elif node.name in PAIRED_ELEMENTS and node.children:
                # Impress ignores spans in a link, so the spans around a link must stay around it.
                closing = f"{self._text[node.content_end : node.end]}{self._closing(style)}"
                yield Token("open", *(span or (node.begin, node.content_begin)), style + opening)
                yield from self._inside(node, "", span)
                yield Token("close", *(span or (node.content_end, node.end)), closing)
            elif node.name not in NOT_SHOWN:
                kind: TokenKind = "break" if node.name in LINE_PARTS else "point"
                yield Token(kind, *place, f"{style}{raw}{self._closing(style)}", inside=(node,))

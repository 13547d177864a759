"""Reads electronic books (.epub): their pages, their table of contents and their title."""

import re
from dataclasses import replace
from urllib.parse import unquote

from transduce.system.errors import UserError
from transduce.text.formats import DocumentFile
from transduce.wings.documents.archive import Archive, ArchiveDocument
from transduce.wings.documents.document import Document, Edit, spoken_language
from transduce.wings.documents.html import read_html
from transduce.wings.documents.opendocument import OpenDocument
from transduce.wings.documents.paragraphs import read_paragraphs

PAGES = re.compile(r"(?i).*\.(?:xhtml|html|htm)")
PACKAGES = re.compile(r".*\.opf")  # has the title and the language of a book
CONTENTS = re.compile(r".*\.ncx")  # the table of contents in EPUB 2
ENCRYPTION = "META-INF/encryption.xml"
ENCRYPTED_MEMBER = re.compile(r"""\bURI\s*=\s*["']([^"']*)""")
ENTITY_DECLARATION = re.compile(rb"<!ENTITY\s")
BOOK_LANGUAGE = re.compile(r"(<(?:\w+:)?language(?:\s[^<>]*)?>\s*)([\w-]+)")


def read_epub(file: DocumentFile) -> ArchiveDocument:
    """The texts of the pages, the table of contents and the title.

    The declared language of the book becomes `file.target`, if it is `file.source`. Raises UserError for a book with
    protection against copies.
    """
    archive = Archive(file.content, file.name)
    archive.require("META-INF/container.xml", "an EPUB file")
    pages = archive.matching(PAGES)
    if ENCRYPTION in archive.names:
        encrypted = ENCRYPTED_MEMBER.findall(archive.read_xml(ENCRYPTION)[0])
        if not {unquote(address) for address in encrypted}.isdisjoint(pages):  # else only fonts
            raise UserError(
                f"{file.name} is protected against copies, so its text can't be read.",
                "Get a copy without protection from its publisher.",
            )
    members = {page: _page(archive, page, file) for page in pages}
    members |= {
        member: _texts(archive, member, "ncx:text") for member in archive.matching(CONTENTS)
    }
    for member in archive.matching(PACKAGES):
        package = _texts(archive, member, "dc:title")
        edits = tuple(
            Edit(*language.span(2), file.target.replace("_", "-"))
            for language in BOOK_LANGUAGE.finditer(package.content)
            if spoken_language(language[2]) == spoken_language(file.source) != ""
        )
        members[member] = replace(package, completions=edits)
    return ArchiveDocument(archive, members)


def _page(archive: Archive, member: str, file: DocumentFile) -> Document:
    name = f"{archive.name}: {member}"
    content = archive.read(member)
    if ENTITY_DECLARATION.search(content):
        raise UserError(f"{name} declares entities.", "Remove the declarations.")
    return read_html(file._replace(content=content, name=name))


def _texts(archive: Archive, member: str, element: str) -> Document:
    """The texts of the elements with a name."""
    text, name, codec = archive.read_xml(member)
    return read_paragraphs(text, name, codec, _Label(text, (element,)))


class _Label(OpenDocument):
    """A text without elements."""

    def write(self, text: str, _style: str) -> str:
        return text

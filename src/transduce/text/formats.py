"""Maps the suffixes of file names to the functions that read the files.

To add a format, write a reader function and name it in `FILE_FORMATS`.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple, Protocol

from transduce.system.registry import load, plugins
from transduce.text.plain import read_pieces, suffixes


class TextKind(NamedTuple):
    """What tags and placeholders a text may contain."""

    markup: bool = False  # XML or HTML
    preserve: bool = False  # whether white space in the markup counts
    message: bool = False  # shown by a program: `$1`, `@name` and `:name` are placeholders


PLAIN_TEXT = TextKind()
MARKUP_TEXT = TextKind(markup=True)
PRESERVED_TEXT = TextKind(markup=True, preserve=True)
MESSAGE = TextKind(message=True)


class CorpusFile(NamedTuple):
    """The argument of a function that reads pairs."""

    path: str  # "-" for standard input
    languages: tuple[str, str]  # codes of the source and the target language
    lenient: bool = False  # also read lines that are not UTF-8, see `encoding_errors`


class DocumentFile(NamedTuple):
    """The argument of a function that reads a document."""

    content: bytes
    name: str
    source: str  # language code
    target: str  # language code
    redo: bool = False  # also read texts that already have a translation
    needs_review: bool = False  # mark new translations for a review, if the format can


class Document(Protocol):
    """The texts of a file. `write` returns the file's content with translations in place of the texts."""

    @property
    def texts(self) -> list[str]: ...
    @property
    def kinds(self) -> list[TextKind]: ...
    @property
    def lines(self) -> list[int]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...  # what the user should know about the file
    def write(self, translations: Sequence[str]) -> bytes: ...


# A source text, its translation, and the line number of the source text.
TextPair = tuple[str, str, int]


class Format(NamedTuple):
    """The reader functions of a format, each as "module:function", or "" if there is none."""

    pairs: str = ""  # see `read_pairs`
    parallel: str = ""  # see `read_parallel`
    document: str = ""  # see `read_document`
    symbols: bool = False  # whether the targets are symbols, as linearised trees are
    plain: bool = False  # whether two files with this suffix are line-aligned plain text

    def read_pairs(self, file: CorpusFile) -> Iterator[TextPair]:
        """Read a file that holds both languages."""
        read: Callable[[CorpusFile], Iterator[TextPair]] = load(self.pairs)
        return read(file)

    def read_parallel(self, source: str, target: str) -> Iterator[TextPair]:
        """Read two files that hold one language each."""
        read: Callable[[str, str], Iterator[TextPair]] = load(self.parallel)
        return read(source, target)

    def read_document(self, file: DocumentFile) -> Document:
        """Read a file to translate it."""
        read: Callable[[DocumentFile], Document] = load(self.document)
        return read(file)

    @property
    def is_bilingual(self) -> bool:
        """Whether files of this format hold both languages."""
        return bool(self.pairs) and not self.plain

    @property
    def is_document(self) -> bool:
        """Whether files of this format can be translated and are not plain text."""
        return bool(self.document) and not self.plain


# JSON of Flutter, or lines of text in Standard Arabic.
ARABIC_OR_FLUTTER = ".arb"

_TSV = "transduce.text.tsv:read_tsv"
_DOCUMENTS = "transduce.wings.documents"
_XLIFF = Format(f"{_DOCUMENTS}.xliff:read_xliff_pairs", document=f"{_DOCUMENTS}.xliff:read_xliff")
_PAGE = Format(
    parallel=f"{_DOCUMENTS}.parallel_documents:read_page_pairs",
    document=f"{_DOCUMENTS}.html:read_html",
)
_MARKDOWN = Format(document=f"{_DOCUMENTS}.markdown:read_markdown")
_SUBTITLES = Format(
    parallel=f"{_DOCUMENTS}.parallel_documents:read_subtitle_pairs",
    document=f"{_DOCUMENTS}.subtitles:read_subtitles",
)
# Files with texts of one language by keys.
_KEYED = Format(
    parallel=f"{_DOCUMENTS}.keyed_files:read_keyed_pairs",
    document=f"{_DOCUMENTS}.keyed_files:read_keyed",
)
_OTHER_SUBTITLES = _SUBTITLES._replace(
    document=f"{_DOCUMENTS}.other_subtitles:read_other_subtitles"
)
FILE_FORMATS = {
    ".tsv": Format(_TSV),
    ".tab": Format(_TSV, plain=True),
    ".txt": Format(_TSV, document=f"{_DOCUMENTS}.lines:read_text", plain=True),
    ".jsonl": Format("transduce.text.jsonl:read_jsonl"),
    ".parquet": Format("transduce.wings.tables.parquet:read_parquet"),
    ".tmx": Format(f"{_DOCUMENTS}.tmx:read_tmx_pairs", document=f"{_DOCUMENTS}.tmx:read_tmx"),
    ".xlf": _XLIFF,
    ".xliff": _XLIFF,
    ".po": Format(f"{_DOCUMENTS}.po:read_po_pairs", document=f"{_DOCUMENTS}.po:read_po"),
    ".pot": Format(document=f"{_DOCUMENTS}.po:read_po"),
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".docx": Format(document=f"{_DOCUMENTS}.ooxml:read_docx"),
    ".pptx": Format(document=f"{_DOCUMENTS}.ooxml:read_pptx"),
    ".epub": Format(document=f"{_DOCUMENTS}.epub:read_epub"),
    ".odt": Format(document=f"{_DOCUMENTS}.opendocument:read_odt"),
    ".odp": Format(document=f"{_DOCUMENTS}.opendocument:read_odp"),
    ".html": _PAGE,
    ".htm": _PAGE,
    ".xhtml": _PAGE,
    ".srt": _SUBTITLES,
    ".vtt": _SUBTITLES,
    ".ass": _OTHER_SUBTITLES,
    ".ssa": _OTHER_SUBTITLES,
    ".sbv": _OTHER_SUBTITLES,
    ".ttml": _OTHER_SUBTITLES,
    ".csv": Format(
        f"{_DOCUMENTS}.csv_tables:read_csv_pairs", document=f"{_DOCUMENTS}.csv_tables:read_csv"
    ),
    ".xlsx": Format(
        f"{_DOCUMENTS}.excel:read_excel_pairs", document=f"{_DOCUMENTS}.excel:read_excel"
    ),
    ".xcstrings": Format(
        f"{_DOCUMENTS}.string_catalog:read_catalog_pairs",
        document=f"{_DOCUMENTS}.string_catalog:read_catalog",
    ),
    ".xml": _KEYED,
    ".strings": _KEYED,
    ".json": _KEYED,
    ".arb": _KEYED,
    ".properties": _KEYED,
    ".ftl": _KEYED,
    ".resx": _KEYED,
    ".resw": _KEYED,
    ".yml": _KEYED,
    ".yaml": _KEYED,
}


def file_formats() -> Mapping[str, Format]:
    """All formats by suffix."""
    return {**FILE_FORMATS, **plugins("file_formats")}


def format_of(file: str) -> Format:
    """The format of a file by its suffix, ignoring .gz and the like. An unknown suffix gives `Format()`.

    A suffix that is also the code of a language gives `Format()`, too, if the file holds other content.
    """
    suffix = suffixes(file)[0]
    if suffix == ARABIC_OR_FLUTTER and Path(file).is_file():
        first = next(read_pieces(file), b"").removeprefix(BOM_UTF8).lstrip()
        if not first.startswith(b"{"):
            return Format()
    return file_formats().get(suffix, Format())


def bilingual_suffixes() -> list[str]:
    """The suffixes of files that hold both languages."""
    return [suffix for suffix, form in file_formats().items() if form.is_bilingual]


def document_suffixes() -> list[str]:
    """The suffixes of files that `read_document` reads."""
    return [suffix for suffix, form in file_formats().items() if form.document]


def read_document(
    content: bytes,
    name: str,
    source: str,
    target: str,
    *,
    redo: bool = False,
    needs_review: bool = False,
) -> Document:
    """Read a document in the format that the suffix of `name` indicates.

    `source` and `target` are language codes. If `redo` is true, also reads texts that already have translations. Raises
    UserError for an unknown suffix and for an invalid file.
    """
    file = DocumentFile(content, name, source, target, redo, needs_review)
    return document_format(name).read_document(file)


def document_format(name: str) -> Format:
    """The format of a document by its suffix. Raises UserError if no document has this suffix."""
    form = file_formats().get(PurePath(name).suffix.lower(), Format())
    if not form.document:
        raise load(f"{_DOCUMENTS}.foreign_files:unknown_document")(name)
    return form

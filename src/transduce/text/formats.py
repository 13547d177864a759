"""The registry of file formats: the suffix of a file's name says which reader understands it.

To add a format, write its reader in a module and name the reader in `FILE_FORMATS`. The module is imported when the
first file of the format is read.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from pkgutil import resolve_name
from typing import Literal, NamedTuple, Protocol, cast

from transduce.system.errors import UserError
from transduce.text.plain import suffixes

TextKind = Literal["plain", "markup", "preserved"]  # preserved: markup in which every blank counts


class CorpusFile(NamedTuple):
    """A file of a corpus, as its reader gets it."""

    path: str  # "-" for standard input
    languages: tuple[str, str]  # codes of the source and the target language
    lenient: bool = False  # also read what is not UTF-8, see `encoding_errors`


class DocumentFile(NamedTuple):
    """A file to translate, as its reader gets it."""

    content: bytes
    name: str
    source: str  # code of the language
    target: str
    redo: bool = False  # also read texts that have a translation already


class Document(Protocol):
    """The texts of a file; `write` puts translations in their place and leaves the rest of the file unchanged."""

    @property
    def texts(self) -> list[str]: ...
    @property
    def kinds(self) -> list[TextKind]: ...
    @property
    def lines(self) -> list[int]: ...
    def write(self, translations: Sequence[str]) -> bytes: ...


TextPair = tuple[str, str, int]  # a source text, its translation, and the line of the source
ReadPairs = Callable[[CorpusFile], Iterator[TextPair]]
ReadParallel = Callable[[str, str], Iterator[TextPair]]
ReadDocument = Callable[[DocumentFile], Document]


class Format(NamedTuple):
    """The readers of a format, each as "module:function", or "" for none."""

    pairs: str = ""  # a `ReadPairs`: a file holds both languages
    parallel: str = ""  # a `ReadParallel`: two files hold a language each
    document: str = ""  # a `ReadDocument`: a file can be translated
    one_at_a_time: bool = False  # a corpus is a single file of this format
    plain: bool = False  # also the suffix of plain text files, two of which are line-aligned

    @property
    def is_document(self) -> bool:
        """Whether texts may hold tags and placeholders, and line breaks that mean a blank."""
        return bool(self.document) and not self.plain


TREES = ".mrg"

_TSV = "transduce.text.tsv:read_tsv"
_DOCUMENTS = "transduce.wings.documents"
_XLIFF = Format(f"{_DOCUMENTS}.xliff:read_xliff_pairs", document=f"{_DOCUMENTS}.xliff:read_xliff")
_PAGE = Format(parallel=f"{_DOCUMENTS}.parallel_documents:read_page_pairs", document=f"{_DOCUMENTS}.html:read_html")
_SUBTITLES = Format(
    parallel=f"{_DOCUMENTS}.parallel_documents:read_subtitle_pairs", document=f"{_DOCUMENTS}.subtitles:read_subtitles"
)
FILE_FORMATS = {
    ".tsv": Format(_TSV),
    ".tab": Format(_TSV, plain=True),
    ".txt": Format(_TSV, document=f"{_DOCUMENTS}.lines:read_text", plain=True),
    ".jsonl": Format("transduce.text.jsonl:read_jsonl"),
    ".tmx": Format(f"{_DOCUMENTS}.tmx:read_tmx_pairs", document=f"{_DOCUMENTS}.tmx:read_tmx"),
    ".xlf": _XLIFF,
    ".xliff": _XLIFF,
    ".po": Format(f"{_DOCUMENTS}.po:read_po_pairs", document=f"{_DOCUMENTS}.po:read_po"),
    ".pot": Format(document=f"{_DOCUMENTS}.po:read_po"),
    ".html": _PAGE,
    ".htm": _PAGE,
    ".xhtml": _PAGE,
    ".srt": _SUBTITLES,
    ".vtt": _SUBTITLES,
    TREES: Format("transduce.wings.parsing.trees:read_tree_pairs", one_at_a_time=True),
}


# The suffixes of files that `transduce translate` takes for documents; other files are lines.
DOCUMENT_SUFFIXES = frozenset(suffix for suffix, form in FILE_FORMATS.items() if form.is_document)


def format_of(file: str) -> Format:
    """The format that the suffix of a file's name stands for, compressed or not; one without readers if unknown."""
    return FILE_FORMATS.get(suffixes(file)[0], Format())


def combinable_suffixes() -> list[str]:
    """The suffixes of bilingual formats of which a corpus may be several files, or a folder."""
    return [suffix for suffix, form in FILE_FORMATS.items() if form.pairs and not form.plain and not form.one_at_a_time]


def document_suffixes() -> list[str]:
    """The suffixes of files that `read_document` reads."""
    return [suffix for suffix, form in FILE_FORMATS.items() if form.document]


def read_document(content: bytes, name: str, source: str, target: str, *, redo: bool = False) -> Document:
    """The texts to translate in a file; the suffix of its name says its format.

    source, target: codes of the languages. redo: also texts that have a translation, in a file that holds both
    languages. Raises UserError for an unknown format and for a file that its reader refuses.
    """
    suffix = PurePath(name).suffix.lower()
    reader = FILE_FORMATS.get(suffix, Format()).document
    if not reader:
        kind = f"its suffix {suffix}" if suffix else "its name has no suffix, which"
        raise UserError(f"{name} can't be translated: {kind} is none of {', '.join(document_suffixes())}.")
    return cast(ReadDocument, resolve_name(reader))(DocumentFile(content, name, source, target, redo))

"""Checks of a translated document, for the attack on documents."""

import codecs
import html
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import polib
from document_parts import Part
from lxml import etree

from transduce.text.formats import read_document
from transduce.tokens.normalization import Normalizer
from transduce.wings.documents.subtitles import INVISIBLE

CAPITALS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
# In a header of PO; it becomes UTF-8.
OPEN_CHARSET = re.compile(r"(?i)(?<=charset=)(?:CHARSET|US-ASCII|ASCII)\b")
LINE_BREAK = re.compile(r"\r\n|\r|\n")
UNCLEAR = r"""=\s*=|=\s*(?:"[^"]*|'[^']*)\Z|(?i:<(title|textarea)(?![^<]*</\1))"""
SPOKEN = {"alt", "title", "placeholder", "aria-label", "value", "content"}


def check_bytes(parts: Sequence[Part], output: str, name: str, exact: bool) -> None:
    """Raise AssertionError unless the parts that must stay did so and each place has the translation of its text.

    If `exact` is true, a translation has no other characters than its source.
    """
    at = 0
    for i, part in enumerate(parts):
        if isinstance(part, str):
            assert output.startswith(part, at), f"{output[at : at + 60]!r} instead of {part[:60]!r}"
            at += len(part)
            continue
        behind = parts[i + 1] if i + 1 < len(parts) else None
        ending = r"\Z" if behind is None else re.escape(behind) if isinstance(behind, str) else ""
        match = re.compile(f"{part.after}(?={ending})", re.DOTALL).match(output, at)
        assert match, f"{output[at : at + 100]!r} for {part.source[:60]!r}"
        new = match["text"]
        at = match.end()
        if 'mtype="seg"' in part.source:  # only the text inside these elements is translated
            continue
        assert part.word.translate(CAPITALS) in new, (
            f"{new[:99]!r} is no translation of {part.source[:60]!r}"
        )
        before, after = (characters(raw, name) for raw in (part.source, new))
        assert not before - after, f"{new!r} lacks {before - after} of {part.source!r}"
        assert not exact or before == after, (
            f"{new!r} has {after - before} more than {part.source!r}"
        )
    assert at == len(output), f"{output[at : at + 60]!r} at the end"
    source = "".join(part if isinstance(part, str) else part.before for part in parts)
    expected, found = (set(LINE_BREAK.findall(text)) or {"\n"} for text in (source, output))
    assert found <= expected, f"line breaks {found} instead of {expected}"


def characters(raw: str, name: str) -> Counter[str]:
    """The characters of a normalised text without white space, in lower case: tags and placeholders may move."""
    if name.endswith((".po", ".pot")):
        lines = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', raw))
        raw = re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), lines)
    else:
        raw = html.unescape(raw)
    if name.endswith((".srt", ".vtt")):  # marks around a line go with their line
        raw = re.sub(f"[{INVISIBLE}]", "", raw)
    (text,) = Normalizer()([raw])
    return Counter("".join(text.lower().split()))


def check_slots(name: str, content: bytes, output: bytes, redo: bool) -> None:
    """Raise AssertionError unless the content around the slots is in the output, in order and at both ends."""
    document: Any = read_document(content, name, "ka", "zu", redo=redo)
    text = output.decode(document.codec)
    slots = [slot for slot in document.slots if slot.within is None]
    edited = sorted((each.begin, each.end) for each in [*slots, *document.completions])
    begins = [*(begin for begin, _ in edited), len(document.content)]
    ends = [0, *(end for _, end in edited)]
    kept = [document.content[end:begin] for end, begin in zip(ends, begins, strict=True)]
    assert text.startswith(kept[0]) and text.endswith(kept[-1]), "the beginning or the end changed"
    at = len(kept[0])
    for piece in kept[1:]:
        found = text.find(piece, at)
        assert found >= 0, f"{piece[:60]!r} is gone after {text[at : at + 60]!r}"
        at = found + len(piece)


def completed_header(name: str, content: bytes, header: str) -> str:
    """The header of a PO file after its first translation, from its begin in the file."""
    document: Any = read_document(content, name, "ka", "zu")
    mark = len(document.content) - len(document.content.removeprefix("\ufeff"))
    for edit in sorted(document.completions, reverse=True):
        if edit.end - mark <= len(header):
            header = header[: edit.begin - mark] + edit.text + header[edit.end - mark :]
    return header


def structure(name: str, content: bytes) -> list[Any] | None:
    """What an independent parser finds in a document, without its translations. None: it cannot read the document."""
    suffix = name.rpartition(".")[2]
    if suffix in ("po", "pot"):
        return po_structure(content)
    if suffix in ("xlf", "xliff", "tmx"):
        return xml_structure(content)
    text = content.decode(
        "utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8",
        "replace",
    )
    if suffix in ("html", "xhtml"):
        page = Page()
        is_unclear = re.search(UNCLEAR, text)
        if is_unclear:  # html.parser reads these otherwise than browsers
            return None
        try:
            page.feed(text)
        except AssertionError:  # for declarations that html.parser does not know
            return None
        return sorted(page.found.items(), key=str)
    if suffix in ("srt", "vtt"):
        return [
            line
            for line in re.split(r"\r\n|\r|\n", text)
            if re.search(r"^\s*\d[\d:.,]*\s*-->", line)
        ]
    return [not line.strip(" \t\r\ufeff\u00a0") for line in text.split("\n")]


def po_structure(content: bytes) -> list[Any] | None:
    """The messages that polib finds, without their translations unless these must stay."""
    declared = re.search(rb"charset=([\w-]+)", content)
    codec = declared[1].decode() if declared and declared[1] != b"CHARSET" else "utf-8"
    with tempfile.NamedTemporaryFile() as file:  # polib splits strings at other line breaks, too
        file.write(
            OPEN_CHARSET.sub("UTF-8", content.decode("latin-1"))
            .encode("latin-1")
            .removeprefix(codecs.BOM_UTF8)
        )
        file.flush()
        try:
            found = polib.pofile(file.name, encoding=codec)
        except (OSError, ValueError, LookupError, AttributeError):
            return None
    texts = [
        (e.msgid, e.msgid_plural, e.msgctxt, e.flags, e.obsolete, e.previous_msgid) for e in found
    ]
    comments = [(e.comment, e.tcomment, e.occurrences) for e in found]
    stays = [(e.msgstr, e.msgstr_plural) for e in found if e.fuzzy or e.obsolete]
    # A translation completes the others.
    fields = {key: found.metadata.get(key) for key in ("Project-Id-Version", "X-Generator")}
    return [(found.header, fields), *texts, *comments, *stays]


def xml_structure(content: bytes) -> list[Any] | None:
    """The elements, attributes and texts of a file without targets and white space."""
    try:
        root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, huge_tree=True))
    except (etree.XMLSyntaxError, ValueError):
        return None
    for element in [*root.iter("{*}target", "{*}tuv")]:
        language = (
            element.get("{http://www.w3.org/XML/1998/namespace}lang") or element.get("lang") or "zu"
        )
        parent = (
            etree.QName(element.getparent()).localname if element.getparent() is not None else ""
        )
        if parent in ("trans-unit", "segment") or (
            parent == "tu" and language.lower().startswith("zu")
        ):
            tail = element.tail or ""
            before = element.getprevious()
            if before is not None:
                before.tail = (before.tail or "") + tail
            else:
                element.getparent().text = (element.getparent().text or "") + tail
            element.getparent().remove(element)
    return [
        (str(e.tag), dict(e.attrib), (e.text or "").strip(), (e.tail or "").strip())
        for e in root.iter()
    ]


class Page(HTMLParser):
    """Counts the tags, comments and declarations of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found = Counter[object]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag, *((name, None if name in SPOKEN else value) for name, value in attrs)] += 1

    def handle_endtag(self, tag: str) -> None:
        self.found["/", tag] += 1

    def handle_comment(self, data: str) -> None:
        self.found["!--", data] += 1

    def handle_decl(self, decl: str) -> None:
        self.found["!", decl] += 1

"""Reads texts and presentations of Microsoft Office (.docx, .pptx).

A paragraph consists of runs: texts of one style. Fields, drawings, formulas and references stay; tracked changes are
accepted. Readings above characters (ruby) are left out of translations.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from transduce.text.formats import DocumentFile
from transduce.wings.documents.archive import Archive, ArchiveDocument
from transduce.wings.documents.document import Document
from transduce.wings.documents.paragraphs import Token, is_balanced, joined, read_paragraphs
from transduce.wings.documents.xml_tree import Node, characters, raw_name

WORD_TEXT = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")
SLIDE_TEXT = re.compile(r"ppt/(?:slides/slide|notesSlides/notesSlide)\d+\.xml")
DRAWN_TEXT = re.compile(r"(?:word|ppt)/(?:diagrams/(?:data|drawing)|charts/chart)\d+\.xml")
# Elements of a paragraph, without the prefix.
TRACKED = re.compile(r"<(?:\w+:)?(?:ins|del|moveFrom|moveTo)\s")
INSERTED = ("ins", "moveTo")
DELETED = (
    *("del", "moveFrom", "moveFromRangeStart", "moveFromRangeEnd"),
    *("moveToRangeStart", "moveToRangeEnd"),
)
CONTAINERS = ("hyperlink", "sdt", "sdtContent", "smartTag", "customXml", "dir", "bdo")
BREAKS = ("tab", "br", "cr", "ptab")
# What depends on the source language, on the history or on the layout.
LEFT_OUT = ("pPr", "rPr", "endParaRPr", "proofErr", "lastRenderedPageBreak", "softHyphen")
# Properties of a run that do not change the looks of its text.
UNSEEN_PROPERTIES = ("lang", "noProof", "rPrChange", "ins", "del", "moveFrom", "moveTo")
UNSEEN_ATTRIBUTES = re.compile(
    r"""\s(?:lang|altLang|dirty|err|smtClean|noProof)=(?:"[^"]*"|'[^']*')"""
)
BARE_TAG = re.compile(r"<[^\s/>]+\s*/?>")
LINE_ENDS = re.compile(r"[\r\n]+")
TAB = re.compile("(\t|&#x?0*9;)")  # as PowerPoint writes it; Word has an element
RAISED_STYLE = re.compile(r"vertAlign|baseline=")
PRESERVED = re.compile(r"""\sxml:space\s*=\s*["']preserve""")
FIELD_PART = re.compile(r"""fldCharType\s*=\s*["'](\w+)""")
INSTRUCTION = re.compile(r"""\w:instr\s*=\s*["']([^"']*)""")
TEXT_FIELDS = ("HYPERLINK", "TOC", "FORMTEXT")  # whose results an author wrote


def read_docx(file: DocumentFile) -> ArchiveDocument:
    """The paragraphs of a text, its headers, footers, notes, text boxes and diagrams; not its comments."""
    archive = Archive(file.content, file.name)
    archive.require("word/", "a text of Microsoft Word")
    members = {**_read(archive, WORD_TEXT, "w"), **_read(archive, DRAWN_TEXT, "a")}
    return ArchiveDocument(archive, members, _notes(archive.name, members.values()))


def read_pptx(file: DocumentFile) -> ArchiveDocument:
    """The paragraphs of the slides, their notes, diagrams and charts; not those of layouts and masters."""
    archive = Archive(file.content, file.name)
    archive.require("ppt/", "a presentation of Microsoft PowerPoint")
    members = {**_read(archive, SLIDE_TEXT, "a"), **_read(archive, DRAWN_TEXT, "a")}
    return ArchiveDocument(archive, members)


def _read(archive: Archive, members: re.Pattern[str], prefix: str) -> dict[str, Document]:
    documents = {}
    for member in archive.matching(members):
        text, name, codec = archive.read_xml(member)
        documents[member] = read_paragraphs(text, name, codec, Ooxml(prefix, text))
    return documents


def _notes(name: str, documents: Iterable[Document]) -> tuple[str, ...]:
    if not any(TRACKED.search(document.content) for document in documents):
        return ()
    return (
        f"{name} has tracked changes. The texts are translated as if all changes were accepted.",
    )


def _has_text(instruction: str) -> bool:
    return instruction.strip().startswith(TEXT_FIELDS)


def _is_mark(token: Token, following: Sequence[Token]) -> bool:
    """Whether a text is raised or lowered behind a word, such as the number of a footnote, unlike the 2 of H2O."""
    is_raised = token.kind == "text" and RAISED_STYLE.search(token.style)
    ends_word = not any(each.raw[:1].isalnum() for each in following)
    return bool(is_raised) and ends_word and not any(map(str.isalpha, token.raw))


class Ooxml:
    """The syntax of paragraphs in WordprocessingML (prefix w) and DrawingML (prefix a)."""

    def __init__(self, prefix: str, text: str) -> None:
        self._prefix = f"{prefix}:"
        self._text = text
        self._tag = ""  # the prefix in the file, with a colon
        self.paragraphs = (f"{prefix}:p",)
        self.skipped = (f"{prefix}:del", f"{prefix}:moveFrom")

    def tokens(self, paragraph: Node) -> list[Token]:
        """The tokens of a paragraph."""
        self._tag = raw_name(self._text, paragraph).removesuffix("p")
        tokens = self._with_fields(self._inside(paragraph, None))
        return [
            joined([token], self.write) if _is_mark(token, tokens[i + 1 : i + 2]) else token
            for i, token in enumerate(tokens)
        ]

    def write(self, text: str, style: str) -> str:
        """A run."""
        space = ' xml:space="preserve"' if self._prefix == "w:" else ""
        return self._run(style, f"<{self._tag}t{space}>{text}</{self._tag}t>")

    def _run(self, properties: str, content: str) -> str:
        return f"<{self._tag}r>{properties}{content}</{self._tag}r>"

    def _raw(self, node: Node) -> str:
        return self._text[node.begin : node.end]

    def _local(self, node: Node) -> str:
        """The name of an element of this syntax without its prefix, or "" for other nodes."""
        return node.name[2:] if node.name.startswith(self._prefix) else ""

    def _inside(self, parent: Node, span: tuple[int, int] | None) -> Iterator[Token]:
        """The tokens in a paragraph or container. `span` is the place of the element to which all of them belong."""
        for node in parent.children:
            name = self._local(node)
            place = span or (node.begin, node.end)
            instruction = INSTRUCTION.search(self._text, node.begin, node.content_begin)
            if name == "r":
                yield from self._of_run(node, place)
            elif name in INSERTED:
                yield from self._inside(node, place)
            elif name in DELETED:
                yield Token("gone", *place, "")
            elif name in CONTAINERS or (instruction and _has_text(instruction[1])):
                yield from self._container(node, span)
            elif name in BREAKS:
                yield Token("break", *place, self._raw(node))
            elif name not in LEFT_OUT and node.name not in ("", "?"):
                yield Token("point", *place, self._raw(node), inside=(node,))

    def _container(self, node: Node, span: tuple[int, int] | None) -> Iterator[Token]:
        """A pair of tokens around those of an element; its properties belong to the opening one."""
        begin = node.content_begin
        content = list(node.children)
        while content and (content[0].name.endswith("Pr") or not content[0].name):
            begin = content.pop(0).end
        yield Token("open", *(span or (node.begin, begin)), self._text[node.begin : begin])
        yield from self._inside(node._replace(children=content), span)
        closing = self._text[node.content_end : node.end]
        yield Token("close", *(span or (node.content_end, node.end)), closing)

    def _of_run(self, run: Node, place: tuple[int, int]) -> Iterator[Token]:
        properties = next((node for node in run.children if self._local(node) == "rPr"), None)
        own = self._raw(properties) if properties else ""
        style = self._style(properties) if properties else ""
        for node in run.children:
            name = self._local(node)
            if name == "t":
                for part in filter(None, TAB.split(self._characters(node))):
                    text = Token("text", *place, part, style)
                    yield (
                        joined([text], self.write)._replace(kind="break")
                        if TAB.match(part)
                        else text
                    )
            elif name == "ruby":
                for base in node.children:
                    if self._local(base) == "rubyBase":
                        yield from self._inside(base, place)
            elif name == "noBreakHyphen":
                yield Token("text", *place, "\u2011", style)
            elif name not in LEFT_OUT and node.name not in ("", "?"):
                token = Token("point", *place, self._run(own, self._raw(node)), inside=(node,))
                part = FIELD_PART.search(self._text, node.begin, node.content_begin)
                if name == "fldChar" and part:
                    token = token._replace(kind="field", style=part[1])
                elif name == "instrText":
                    token = token._replace(kind="instruction", style=self._characters(node))
                yield token._replace(kind="break") if name in BREAKS else token

    def _characters(self, node: Node) -> str:
        text = LINE_ENDS.sub(" ", characters(self._text, node))
        tag = self._text[node.begin : node.content_begin]
        keeps_blanks = self._prefix == "a:" or PRESERVED.search(tag)
        return text if keeps_blanks else text.strip(" \t")  # not the blanks that don't break

    def _style(self, properties: Node) -> str:
        """The properties of a run that a reader sees."""
        opening = self._text[properties.begin : properties.content_begin]
        tag = UNSEEN_ATTRIBUTES.sub("", opening)
        inner = [
            self._raw(node)
            for node in properties.children
            if self._local(node) not in UNSEEN_PROPERTIES and node.name not in ("", "?")
        ]
        if not inner and BARE_TAG.fullmatch(tag):
            return ""
        return "".join([tag, *inner, self._text[properties.content_end : properties.end]])

    def _with_fields(self, tokens: Iterable[Token]) -> list[Token]:
        """Join the tokens of each field to one token or, if its result is a text, to a pair around this text."""
        done = list[Token]()
        begins = list[int]()
        for token in tokens:
            done.append(token)
            if token.kind == "field" and token.style == "begin":
                begins.append(len(done) - 1)
            elif token.kind == "field" and token.style == "end" and begins:
                begin = begins.pop()
                done[begin:] = self._field(done[begin:])
        return [
            token._replace(kind="point") if token.kind in ("field", "instruction") else token
            for token in done
        ]

    def _field(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """The tokens of a field; unchanged if it begins in one container and ends in another."""
        if not is_balanced(tokens):
            return tokens
        parts = [token.style if token.kind == "field" else "" for token in tokens]
        result = parts.index("separate") + 1 if "separate" in parts else len(tokens)
        instruction = "".join(each.style for each in tokens[:result] if each.kind == "instruction")
        has_text = result < len(tokens) and _has_text(instruction)
        if has_text and is_balanced(tokens[:result]):
            opening = joined(tokens[:result], self.write)._replace(kind="open")
            return [opening, *tokens[result:-1], tokens[-1]._replace(kind="close")]
        return [joined(tokens, self.write)]

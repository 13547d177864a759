"""Finds elements of an XML file, as trees with their places in the file."""

import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape

from transduce.inline.markup import pieces
from transduce.system.errors import UserError
from transduce.wings.documents.xml import ill_formed, refuse_declaration

NAMESPACE = re.compile(r"""\sxmlns(?::(?P<prefix>[\w.-]+))?\s*=\s*["'](?P<address>[^"']*)["']""")
# The end of a namespace's address -> the prefix by which this package calls the namespace.
PREFIXES = {
    "/wordprocessingml/2006/main": "w",
    "/ooxml/wordprocessingml/main": "w",
    "/drawingml/2006/main": "a",
    "/ooxml/drawingml/main": "a",
    "/spreadsheetml/2006/main": "x",
    "/ooxml/spreadsheetml/main": "x",
    ":xmlns:text:1.0": "text",
    ":xmlns:office:1.0": "office",
    ":xmlns:presentation:1.0": "presentation",
    "/dc/elements/1.1/": "dc",
    "/2005/ncx/": "ncx",
}
CDATA_BEGIN = "<![CDATA["
MAX_XML_LEVELS = 200  # of elements in a paragraph


class Node(NamedTuple):
    """An element, a text or a comment, with its place in the file."""

    name: str  # with the prefix of PREFIXES, if any; "" for a text, "?" for comments and the like
    begin: int
    end: int
    content_begin: int  # for a node without tags, `end`
    content_end: int
    children: list["Node"]

    def walk(self) -> Iterator["Node"]:
        """The node and all nodes inside, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()


def check_xml(text: str, name: str) -> None:
    """Raise UserError if a text is not well-formed XML, or declares entities or elements."""
    parser = expat.ParserCreate("utf-8")
    refuse = partial(refuse_declaration, name, parser)

    def doctype(_name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        if has_subset:
            refuse()

    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise ill_formed(name, error, is_last=True) from None


def find_elements(
    text: str, wanted: Collection[str], skipped: Collection[str], name: str
) -> Iterator[Node]:
    """The outermost elements with one of the names `wanted`, except in elements with one of the names `skipped`.

    The text must be well-formed. Raises UserError for elements that are nested too deeply.
    """
    rename = _Names(text)
    opened = list[Node]()  # from the wanted element down
    skipping = 0  # number of open elements from the skipped one down
    for kind, begin, end, raw_name in pieces(text):
        if not opened and kind not in ("open", "close"):
            continue
        if skipping or (kind == "open" and not opened and rename[raw_name] in skipped):
            skipping += (kind == "open") - (kind == "close")
        elif kind == "open" and (opened or rename[raw_name] in wanted):
            opened.append(Node(rename[raw_name], begin, end, end, end, []))
            if len(opened) > MAX_XML_LEVELS:
                raise UserError(f"{name}: more than {MAX_XML_LEVELS} nested elements.")
        elif kind == "close" and opened:
            closed = opened.pop()._replace(content_end=begin, end=end)
            if opened:
                opened[-1].children.append(closed)
            else:
                yield closed
        elif opened:
            shown = "" if kind == "text" else "?"
            name_or_kind = rename[raw_name] if raw_name else shown
            opened[-1].children.append(Node(name_or_kind, begin, end, end, end, []))


class _Names(dict[str, str]):
    """The names of elements with the prefixes of PREFIXES, by their names in the file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._prefixes = {
            match["prefix"] or "": prefix
            for match in NAMESPACE.finditer(text)
            for end, prefix in PREFIXES.items()
            if match["address"].endswith(end)
        }

    def __missing__(self, name: str) -> str:
        prefix, _, local = name.rpartition(":")
        known = self._prefixes.get(prefix)
        self[name] = f"{known}:{local}" if known else name
        return self[name]


def raw_name(text: str, element: Node) -> str:
    """The name of an element with its prefix in the file."""
    return re.split(r"[\s/>]", text[element.begin + 1 : element.content_begin], maxsplit=1)[0]


def characters(text: str, node: Node) -> str:
    """The characters of an element, as XML, without those of the elements inside."""
    parts = list[str]()
    for child in node.children:
        raw = text[child.begin : child.end]
        is_cdata = raw.startswith(CDATA_BEGIN)
        if not child.name or is_cdata:
            parts.append(escape(raw[len(CDATA_BEGIN) : -len("]]>")]) if is_cdata else raw)
    return "".join(parts)

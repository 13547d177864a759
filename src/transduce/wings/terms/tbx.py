"""Reads termbases in TBX (ISO 30042), of version 2 (termEntry, langSet) or 3 (conceptEntry, langSec)."""

from collections.abc import Iterator
from xml.etree import ElementTree

from transduce.decoding.types import Term
from transduce.system.errors import UserError
from transduce.text.languages import nearest_code

ENTRIES = ("termEntry", "conceptEntry")
LANGUAGE_SECTIONS = ("langSet", "langSec")
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_tbx(file: str, languages: tuple[str, str]) -> Iterator[Term]:
    """The first term of both languages in each entry that has both. Raises UserError for a file that is not XML."""
    try:
        for _, element in ElementTree.iterparse(file):
            if _name(element) not in ENTRIES:
                continue
            terms = dict(_terms(element))
            codes = [nearest_code(language, terms) for language in languages]
            if all(codes):
                yield Term(*(terms[code] for code in codes if code))
            element.clear()
    except ElementTree.ParseError as error:
        raise UserError(f"{file}:{error.position[0]}: not well-formed XML: {error}.") from None
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}.") from None


def _terms(entry: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """The language codes of an entry, and the first term of each language."""
    for section in entry.iter():
        if _name(section) in LANGUAGE_SECTIONS:
            terms = (
                "".join(each.itertext()).split() for each in section.iter() if _name(each) == "term"
            )
            if words := next(terms, None):
                yield section.get(LANGUAGE, ""), " ".join(words)


def _name(element: ElementTree.Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]

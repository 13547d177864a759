"""Recognises files whose lines are not texts, such as `.json`, and says how to convert them.

The suffix of the file name decides. If the suffix is unknown, or also a language code, the lines decide.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.file_kinds import SPREADSHEETS, TOOLS
from transduce.text.formats import document_suffixes
from transduce.text.languages import LANGUAGE_CODE
from transduce.text.plain import STANDARD_INPUT, read_pieces, suffixes


class ForeignFormat(NamedTuple):
    """A format that transduce can't read."""

    name: str  # name with an article, for messages
    advice: str  # what to do with the file


SUBTITLES = "Convert it to .srt with Subtitle Edit."
XCODE = "Let Xcode export the localizations, which gives .xliff files."
WEBLATE = "Convert it to .po or .xlf, for example with Weblate."
AS_LINES = "Save the texts to translate as a text file, with a text per line."


def _toolkit(command: str) -> str:
    return f"Convert it to .po with {command} of the Translate Toolkit."


JSON_FORMAT = ForeignFormat("a JSON file", _toolkit("json2po"))
XML_FORMAT = ForeignFormat("an XML file", "Convert it to .po, for example with po4a.")
KEYS_FORMAT = ForeignFormat("a file of keys and values", "Convert it to .po or .xlf.")
CODE_FORMAT = ForeignFormat(
    "a file of program code", "Convert its texts to .po, for example with xgettext."
)
TIMES_FORMAT = ForeignFormat("a file of subtitles", SUBTITLES)
PAGE_FORMAT = ForeignFormat("an HTML page", "Save it as .html.")
MESSAGES_FORMAT = ForeignFormat("a file of gettext", "Name it .po.")
CSV_FORMAT = ForeignFormat("a CSV table", AS_LINES)
FOREIGN_FORMATS = {
    ".doc .docm .rtf .pages": (
        "a document of a word processor",
        "Save it as .docx or .odt.",
    ),
    ".ppt .pptm .key": ("a presentation", "Save it as .pptx or .odp."),
    ".xls .xlsm .ods": ("a table", SPREADSHEETS),
    ".pdf .ps .xps": ("a document in pages", "Save its text as .txt."),
    ".mobi .azw3 .fb2": ("an electronic book", "Convert it to .epub with Calibre."),
    ".idml": ("a document of InDesign", _toolkit("idml2po")),
    ".sdlxliff .mqxliff .mxliff .txlf .ttx .txml": ("a file of a translation tool", TOOLS),
    ".mqxlz .wsxz .xlz .sdlppx .sdlrpx .sdltm": ("a package of a translation tool", TOOLS),
    ".xcloc": ("a package of Xcode", "Translate the .xliff file in its folder."),
    ".tbx": (
        "a TBX term base",
        "Use it as a glossary, beside the texts to translate.",
    ),
    ".jsonc": JSON_FORMAT,
    ".json5": ("a JSON5 file", "Convert it to .json first, and then to .po with json2po."),
    ".stringsdict": ("a file of texts for Apple's systems", XCODE),
    ".rc": ("a Windows resource file", _toolkit("rc2po")),
    ".ini .inf": ("an INI file", _toolkit("ini2po")),
    ".toml": ("a TOML file", _toolkit("toml2po")),
    ".php": ("a PHP file", _toolkit("php2po")),
    ".ics": ("a calendar", _toolkit("ical2po")),
    ".dtd": ("a DTD", _toolkit("dtd2po")),
    ".desktop": ("a desktop file", "Extract its texts with xgettext as .po; msgfmt merges them."),
    ".ts .qm": ("a file of Qt Linguist", "Convert it to .xlf with lconvert."),
    ".mo .gmo": ("a compiled gettext file", "Decompile it to .po with msgunfmt."),
    ".sub .lrc .smi .sami .stl .dfxp .usf .idx .scc": TIMES_FORMAT,
    ".dita .ditamap .docbook .dbk .svg .plist .xsl .xslt .rss .atom": XML_FORMAT,
    ".tex .latex .ltx .sty .bib": ("a LaTeX file", "Convert it to .po with po4a."),
    ".ipynb": ("a Jupyter notebook", "Convert it to .html with jupyter nbconvert."),
    ".xht .shtml .mhtml .mht": PAGE_FORMAT,
    ".py .js .mjs .cjs .jsx .tsx .vue .svelte .java .kt .c .h .cc .cpp .hpp .go .rb .rs .swift": CODE_FORMAT,
    ".dart .lua .sh .bash .sql .css .scss .less .scala .vb .ps1 .bat .cmd": CODE_FORMAT,
}
BY_SUFFIX = {
    suffix: ForeignFormat(*form)
    for names, form in FOREIGN_FORMATS.items()
    for suffix in names.split()
}
# Text whose lines people translate one by one.
TEXT_NAMES = (
    "txt text tok bpe src tgt trg ref hyp mt pe snt sent seg raw clean detok lc tc norm in out tab "
    "rst adoc asciidoc org wiki textile"
)
TEXT_SUFFIXES = frozenset(["", *(f".{name}" for name in TEXT_NAMES.split())])
BINARY_FORMATS = frozenset(
    BY_SUFFIX[suffix]
    for suffix in (".doc", ".ppt", ".xls", ".pdf", ".mobi", ".idml", ".mqxlz", ".mo")
)

MAX_SAMPLE_LINES = 200
MIN_SHARE_OF_LINES = 0.5  # minimum share of the lines, without comments
# Minimum share of lines with times; subtitles have one for each line or two of text.
MIN_SHARE_OF_TIMES = 0.2
# Minimum share of different names before colons; in a conversation, names recur.
MIN_DISTINCT_NAMES = 0.9
COMMENT_LINE = re.compile(r"\s*(?:[#;%!]|//|/\*|\*/?(?:\s|$)|<!--|--\s)")
JSON_LINE = re.compile(
    r"""\s*(?:"[^"]*"\s*:\s*["'\[{\w-]|\{\s*["']|\[\s*["'{]|[\]}\[{]+[,;]?\s*$|'[\w. -]+'\s*(?::|=>))"""
)
TAG_LINE = re.compile(
    r"\s*(?:(?:</?[A-Za-z][^<>]*>\s*)+$|<([A-Za-z][\w:.-]*)[^<>]*>.*</\1>\s*$|<[!?/])"
)
PAGE_BEGIN = re.compile(r"\s*<(?:!doctype\s+)?html", re.IGNORECASE)
MESSAGE_LINE = re.compile(r'(?:msg(?:id|str|ctxt)\S*\s)?"[^"]*"\s*$')
CELL_LINE = re.compile(r'\s*"[^"]*"(?:[,;]"[^"]*")+\s*$')
TIME_LINE = re.compile(
    r".*\d\s*-->\s*\d|\[\d+:\d\d\.\d\d|\{\d+\}\{\d+\}|\d+:\d\d:\d\d[.,]\d+,\d+:|Dialogue: \d"
)
ASSIGNMENT_LINE = re.compile(
    r"""\s*(?:(?:export\s+|set\s+)?[\w.$@/-]++(?:\[[^\]]*\])?|"[^"]+"|'[^']+')\s*=(?![=>~])|\s*\[[\w .:/@-]+\]\s*$"""
)
QUOTED_VALUE = re.compile(r"""\s*[a-z_][\w.-]*\s*:\s*(["'`]).*\1,?\s*$""")
MACHINE_NAME = re.compile(r"\s*-?\s*([a-z]\w*(?:[._]\w+)+|[a-z]+[A-Z]\w*)\s*:(?:\s|$)")
INDENTED_NAME = re.compile(r"(?:\s+-?|-)\s*[\w.-]+:(?:\s|$)")
NAME_ALONE = re.compile(r"\s*[\w.-]+:\s*$")
STATEMENT_LINE = re.compile(
    r"\s*[)}\]]+[;,]?\s*$|(?=.*(?:\w\(|[{}]|\w\s*[-+*]?=\s*\S)).*[;{(:]\s*$|\s*(?:import|from) [\w.]+ import "
)


def foreign_format(file: str) -> tuple[ForeignFormat, bool] | None:
    """The format of a file whose lines are not texts, and whether its suffix says so; None for a file of texts."""
    suffix = suffixes(file)[0]
    known = BY_SUFFIX.get(suffix)
    is_language = LANGUAGE_CODE.fullmatch(suffix[1:]) is not None
    if file in STANDARD_INPUT or suffix in TEXT_SUFFIXES or (is_language and not known):
        return None
    if known and not is_language:
        return known, True
    found = _look(file, known) if Path(file).is_file() else None
    return (found, False) if found else None


def unknown_document(name: str) -> UserError:
    """The error for a document that no reader reads."""
    suffix = PurePath(name).suffix.lower()
    if form := BY_SUFFIX.get(suffix):
        return UserError(f"{name} can't be translated: it is {form.name}.", form.advice)
    reason = f"its suffix {suffix} is unknown" if suffix else "its name has no suffix"
    known = f"Known suffixes: {', '.join(document_suffixes())}."
    return UserError(f"{name} can't be translated: {reason}.", known)


def _look(file: str, known: ForeignFormat | None) -> ForeignFormat | None:
    """The format of a file by its first lines; None if they look like texts. `known` is the format of its suffix."""
    sample = next(filter(None, read_pieces(file)), b"")  # a block of the file
    try:
        text = sample[: sample.rfind(b"\n") + 1 or None].decode("utf-8-sig")
    except UnicodeDecodeError:
        return known  # if no format is known, the error names the byte
    lines = [line for line in text.split("\n") if line.strip() and not COMMENT_LINE.match(line)]
    found = format_of_lines(lines[:MAX_SAMPLE_LINES])
    return known if known and found in (XML_FORMAT, JSON_FORMAT) else found


def format_of_lines(lines: Sequence[str]) -> ForeignFormat | None:
    """The format that the lines of a file look like, or None if they look like texts; ignores blank lines."""
    if not lines:
        return None

    def share(*patterns: re.Pattern[str]) -> float:
        return sum(any(each.match(line) for each in patterns) for line in lines) / len(lines)

    if share(TIME_LINE) >= MIN_SHARE_OF_TIMES:
        return TIMES_FORMAT
    if share(TAG_LINE) >= MIN_SHARE_OF_LINES:
        return PAGE_FORMAT if PAGE_BEGIN.match("\n".join(lines)) else XML_FORMAT
    if share(MESSAGE_LINE) >= MIN_SHARE_OF_LINES and any(
        line.startswith("msgid") for line in lines
    ):
        return MESSAGES_FORMAT
    for form, pattern in {JSON_FORMAT: JSON_LINE, CSV_FORMAT: CELL_LINE}.items():
        if share(pattern) >= MIN_SHARE_OF_LINES:
            return form
    names = [match[1] for match in map(MACHINE_NAME.match, lines) if match]
    keys = [ASSIGNMENT_LINE, QUOTED_VALUE]
    if len(set(names)) > MIN_DISTINCT_NAMES * len(names):
        keys.append(MACHINE_NAME)
    if any(map(NAME_ALONE.match, lines)):
        keys += [NAME_ALONE, INDENTED_NAME]
    if share(*keys) >= MIN_SHARE_OF_LINES and share(STATEMENT_LINE) < MIN_SHARE_OF_LINES:
        return KEYS_FORMAT
    return CODE_FORMAT if share(STATEMENT_LINE, *keys) >= MIN_SHARE_OF_LINES else None

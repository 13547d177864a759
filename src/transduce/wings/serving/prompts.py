"""Reads the messages of chats: the text, the languages that a prompt states, and batches of texts.

A prompt in no stated form is refused, because a translation model would translate the prompt itself.
"""

import json
import re
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import NamedTuple

from transduce.system.errors import UserError
from transduce.text.languages import ISO_639_1, language_name, main_language, nearest_code
from transduce.wings.serving.payload import MAX_NAME_CHARACTERS

TEMPLATE_HINT = (
    "In the client's settings, make the placeholder of the text, such as {{text}}, the whole prompt, and leave the "
    "system prompt empty. Or let the prompt begin with a line such as `Translate to German:`."
)
# The first line of a prompt in the stated form, and the blank lines after it.
STATED = re.compile(
    r"\s*translate(?:[ \t]+from[ \t]+([^\n:]{1,64}?))?[ \t]+(?:in)?to[ \t]+([^\n:]{1,64}?)[ \t]*[:：]"
    r"[ \t]*(?:\r?\n\s*|\Z)",
    re.IGNORECASE,
)
TARGET_FIELDS = "target_lang", "target", "targetLanguage", "to"
SOURCE_FIELDS = "source_lang", "source", "sourceLanguage", "from"
# What an instruction to translate contains, by language. "^" also allows for words such as "please" before the verb.
VERBS = r"""
en ^translate\b
en ^(?:you are|you're|act as) an?\b.*\btranslat
de ^übersetz(?:e|t|en)?\b
fr ^tradui(?:s|sez|re)\b
es ^trad[uú](?:ce|cir|zca|zcan|ceme)\b
it ^tradu(?:ci|rre|cete)\b
pt ^tradu(?:z|za|zir|zam)\b
nl ^vertaal\b
sv ^översätt\b
da ^oversæt\b
nb ^oversett\b
fi ^käännä\b
pl ^(?:prze)?tłumacz(?:yć)?\b
cs ^přelož(?:te|it)?\b
ro ^tradu(?:ceți|ce)\b
hu ^fordíts[da]?\b
ru ^перевед(?:и|ите)\b
uk ^переклад(?:и|іть)\b
id ^terjemahkan\b
vi ^dịch\b
tr \bçevir(?:in|iniz)?\b
ar ^ترجم
zh ^翻[译譯]|(?:翻[译譯]|译)[成为為到]
ja 翻訳(?:して|せよ|しなさい)|訳して
ko 번역(?:해|하)
""".strip().splitlines()
POLITE = r"^\W*(?:(?:please|kindly|bitte|por favor|per favore|пожалуйста|hãy|[请請])\W*)?"
MAX_STEM_CHARACTERS = 6  # the endings of longer names change: английский, на английском
NAME_WORD = re.compile(r"[^\W_]+")
SCRIPT_WORDS = {"simplified", "traditional"}
JSON_STRING = r'"(?:[^"\\]|\\.)*"'
JSON_TEXT = re.compile(rf"(?<=[\[,:\s])({JSON_STRING})(?!\s*:)")  # not a key
JSON_TEXTS = re.compile(rf'\s*[\[{{]\s*(?:(?:"\d+"\s*:\s*)?{JSON_STRING}[\s,]*)*[\]}}]\s*')
# Lines between texts: %%, and the numbers and times of subtitles.
SEPARATOR = r"^[ \t]*%%[ \t]*$|^(?:\d+[ \t]*\r?\n)?[\d:,.]+[ \t]*-->.*$"
LINE_NUMBER = (
    r"^[ \t]*(?:(?:\d{1,4}[.):]|#\d{1,4}[.:)]?)(?=\s)|\d{1,4}(?:、| ?\|)|[\[(<]\d{1,4}[\])>])[ \t]*"
)
SEPARATED = re.compile(rf"((?:{SEPARATOR})\s*)", re.MULTILINE)
NUMBERED = re.compile(rf"((?:{SEPARATOR}|{LINE_NUMBER})\s*)", re.MULTILINE)
MAX_FIRST_CHARACTERS = 500  # of the line that may be an instruction
to_json = partial(json.dumps, ensure_ascii=False)


class Prompt(NamedTuple):
    """A text, and the languages that the prompt around it states: codes or names, or ""."""

    text: str = ""
    source: str = ""
    target: str = ""


class Batch(NamedTuple):
    """The texts of a message among what stands between them."""

    parts: list[str]
    places: list[int]  # of the texts
    is_json: bool

    @property
    def texts(self) -> list[str]:
        """The texts to translate."""
        found = [self.parts[place] for place in self.places]
        return list(map(json.loads, found)) if self.is_json else found

    def written(self, translations: Iterable[str]) -> str:
        """The message with translations in the places of its texts; all else stays as it is."""
        parts = list(self.parts)
        for place, text in zip(self.places, translations, strict=True):
            parts[place] = to_json(text) if self.is_json else text
        return "".join(parts)


def read_prompt(system: str, user: str) -> Prompt:
    """Read the system messages and the last user message of a chat. Raises UserError for a prompt in no stated form."""
    outer = _stated(system)
    if outer is None and system.strip():
        raise UserError("This server does not understand the system message.", TEMPLATE_HINT)
    inner = _stated(user)
    if inner is None:
        _check_text(user)
    inner = inner or Prompt(user)
    outer = outer or Prompt()
    return Prompt(inner.text, inner.source or outer.source, inner.target or outer.target)


def read_batch(text: str) -> Batch:
    """Split a message into the texts of JSON, of numbered lines or of subtitles; otherwise, it is one text.

    Raises UserError for JSON that holds anything but texts in a list, or texts by number.
    """
    is_json = _json(text) is not None
    if is_json and not JSON_TEXTS.fullmatch(text):
        raise UserError(
            "This server does not understand the JSON of the message.",
            'Send a text, a list of texts, or {"target_lang": "de", "text": "…"}.',
        )
    marks = NUMBERED if NUMBERED.match(text.lstrip()) else SEPARATED
    parts = (JSON_TEXT if is_json else marks).split(text)
    places = range(1 if is_json else 0, len(parts), 2)
    return Batch(parts, [i for i in places if parts[i].strip('" \t\r\n')], is_json)


def find_language(name: str, among: Iterable[str]) -> str:
    """The code that a code or an English name means, such as "de" or "German"; "" if it is not among the codes."""
    among = list(among)
    words = _words(name)
    scripts = SCRIPT_WORDS & words

    def fits(code: str) -> bool:
        own = SCRIPT_WORDS & _words(language_name(code))
        is_named = _words(language_name(main_language(code))) <= words
        return is_named and (not scripts or own <= scripts)

    named = max(
        filter(fits, among), key=lambda code: len(_words(language_name(code)) & words), default=""
    )
    return nearest_code(name, among) or named


def _words(name: str) -> set[str]:
    return {*NAME_WORD.findall(name.casefold())}


def _stated(message: str) -> Prompt | None:
    """The text of a prompt in a stated form, or None."""
    if line := STATED.match(message):
        return Prompt(message[line.end() :], line[1] or "", line[2])
    fields = _json(message)
    if not isinstance(fields, dict):
        return None

    text = fields.get("text", "")
    text = text if isinstance(text, str) else to_json(text)
    source, target = (
        next((str(fields[name])[:MAX_NAME_CHARACTERS] for name in names if fields.get(name)), "")
        for names in (SOURCE_FIELDS, TARGET_FIELDS)
    )
    return Prompt(text, source, target) if target else None


def _json(text: str) -> object:
    """The list or object that a text in JSON holds, or None. Half a surrogate pair is not valid Unicode."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        found: object = json.loads(text)
        to_json(found).encode()
    except (ValueError, RecursionError):  # includes UnicodeEncodeError
        return None
    return found


def _check_text(text: str) -> None:
    """Raise UserError if the first line of a text is an instruction to translate, and names a language."""
    first = text.strip().partition("\n")[0][:MAX_FIRST_CHARACTERS]
    for line in VERBS:
        language, pattern = line.split(" ", 1)
        asks = re.search(pattern.replace("^", POLITE), first, re.IGNORECASE)
        if asks and _names(language).search(first):
            raise UserError(
                "The message begins with an instruction, but this server only translates texts.",
                TEMPLATE_HINT,
            )


@lru_cache
def _names(language: str) -> re.Pattern[str]:
    """Match a code after "to", the English name of a language, or the beginning of its name in another language."""
    names = _names_in(language)
    names += [name.replace("语", other) for name in names for other in "文語"]
    stems = [name[:-2] if len(name) > MAX_STEM_CHARACTERS else name for name in names]
    begin = "" if language in ("zh", "ja") else r"\b"
    own = "" if language == "en" else f"|{begin}(?:{'|'.join(stems)})"
    codes = "|".join(ISO_639_1.split())
    english = "|".join(_names_in("en"))
    pattern = rf"to (?:{codes})(?:[-_][a-z]{{2,4}}\b|\W*$)|\b(?:{english})\b{own}"
    return re.compile(pattern, re.IGNORECASE)


def _names_in(language: str) -> list[str]:
    """The names that a language has for languages."""
    from babel import Locale

    names = Locale.parse(language).languages
    return [re.escape(names[code]) for code in ISO_639_1.split() if code in names]

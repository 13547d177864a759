"""Reads the messages of chats: the text, the languages that a prompt states, and batches of texts.

A prompt in no stated form is refused, because a translation model would translate the prompt itself.
"""

import json
import re
from collections.abc import Collection, Iterable
from functools import cache, partial
from typing import Annotated, NamedTuple

from pydantic import AliasChoices, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import from_json

from transduce.system.errors import UserError
from transduce.text.languages import ISO_639_1, language_name, main_language, nearest_code
from transduce.wings.serving.payload import Code

TEMPLATE_HINT = (
    "In the client's settings, make the placeholder of the text, such as {{text}}, the whole prompt, and leave the "
    "system prompt empty. Or let the prompt begin with a line such as `Translate to German:`."
)
# The first line of a prompt in the stated form, and the blank lines after it.
STATED = re.compile(
    r"\s*translate(?:[ \t]++from[ \t]++([^\n:]{1,64}?))?[ \t]++(?:in)?to[ \t]++([^\n:]{1,64}?)[ \t]*+[:：]"
    r"[ \t]*(?:\r?\n\s*|\Z)",
    re.IGNORECASE,
)
# How an instruction to translate begins, by language, after words such as "please".
VERBS = r"""
en translate\b|(?:you are|you're|act as) an?\b.*\btranslat
de übersetz(?:e|t|en)?\b
fr tradui(?:s|sez|re)\b
es trad[uú](?:ce|cir|zca|zcan|ceme)\b
it tradu(?:ci|rre|cete)\b
pt tradu(?:z|za|zir|zam)\b
nl vertaal\b
sv översätt\b
da oversæt\b
nb oversett\b
fi käännä\b
pl (?:prze)?tłumacz(?:yć)?\b
cs přelož(?:te|it)?\b
ro tradu(?:ceți|ce)\b
hu fordíts[da]?\b
ru перевед(?:и|ите)\b
uk переклад(?:и|іть)\b
id terjemahkan\b
vi dịch\b
tr .*\bçevir(?:in|iniz)?\b
ar ترجم
zh 翻[译譯]|.*(?:翻[译譯]|译)[成为為到]
ja .*(?:翻訳(?:して|せよ|しなさい)|訳して)
ko .*번역(?:해|하)
""".strip().splitlines()
POLITE = r"\W*(?:(?:please|kindly|bitte|por favor|per favore|пожалуйста|hãy|[请請])\W*)?"
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


def _as_text(value: object) -> object:
    """A value of JSON as a text: "" for null, and a list or an object as JSON."""
    return to_json(value) if isinstance(value, list | dict) else value or ""


FROM_JSON = BeforeValidator(_as_text)


@dataclass
class Prompt:
    """A text, and the languages that the prompt around it states: codes or names, or ""."""

    text: Annotated[str, FROM_JSON] = ""
    source: Annotated[Code, FROM_JSON] = Field(
        default="",
        validation_alias=AliasChoices("source_lang", "source", "sourceLanguage", "from"),
    )
    target: Annotated[Code, FROM_JSON] = Field(
        default="",
        validation_alias=AliasChoices("target_lang", "target", "targetLanguage", "to"),
    )


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
    if system.strip() and not outer.target:
        raise UserError("This server does not understand the system message.", TEMPLATE_HINT)
    inner = _stated(user)
    if not inner.target:
        first = user.strip().partition("\n")[0][:MAX_FIRST_CHARACTERS]
        if any(_instruction(verb).match(first) for verb in VERBS):
            raise UserError(
                "The message begins with an instruction, but this server only translates texts.",
                TEMPLATE_HINT,
            )
    return Prompt(inner.text, inner.source or outer.source, inner.target or outer.target)


def read_batch(text: str) -> Batch:
    """Split a message into the texts of JSON, of numbered lines or of subtitles; otherwise, it is one text.

    Raises UserError for JSON that holds anything but texts in a list, or texts by number.
    """
    try:
        is_json = isinstance(from_json(text), list | dict)
    except ValueError:  # also for half a surrogate pair
        is_json = False
    if is_json and not JSON_TEXTS.fullmatch(text):
        raise UserError(
            "This server does not understand the JSON of the message.",
            'Send a text, a list of texts, or {"target_lang": "de", "text": "…"}.',
        )
    marks = NUMBERED if NUMBERED.match(text.lstrip()) else SEPARATED
    parts = (JSON_TEXT if is_json else marks).split(text)
    places = range(1 if is_json else 0, len(parts), 2)
    return Batch(parts, [i for i in places if parts[i].strip('" \t\r\n')], is_json)


def find_language(name: str, among: Collection[str]) -> str:
    """The code that a code or an English name means, such as "de" or "German", or the only code without a name.

    The result is "" if there is no such code.
    """
    if not name:
        return "".join({*among}) if len({*among}) == 1 else ""
    words = _words(name)
    named = [
        code
        for code in among
        if _words(language_name(main_language(code))) <= words
        # Traditional Chinese is not Simplified Chinese.
        and not words | _words(language_name(code)) >= SCRIPT_WORDS
    ]
    nearest = max(named, key=lambda code: len(_words(language_name(code)) & words), default="")
    return nearest_code(name, among) or nearest


def _words(name: str) -> set[str]:
    return {*NAME_WORD.findall(name.casefold())}


def _stated(message: str) -> Prompt:
    """The text and the languages of a prompt in a stated form; otherwise, the message is the text."""
    if line := STATED.match(message):
        return Prompt(message[line.end() :], line[1] or "", line[2])
    try:
        prompt = TypeAdapter(Prompt).validate_json(message)
    except ValidationError:
        return Prompt(message)
    return prompt if prompt.target else Prompt(message)


@cache
def _instruction(verb: str) -> re.Pattern[str]:
    """Match an instruction of VERBS that names a language, or a code after "to".

    The name is English, or begins as in the language of the instruction.
    """
    language, begin = verb.split(" ", 1)
    stems = [
        # Languages have several words for "language".
        (name[:-2] if len(name) > MAX_STEM_CHARACTERS else name).replace("语", "[语文語]")
        for name in _names(language)
    ]
    boundary = "" if language in ("zh", "ja") else r"\b"
    own = "" if language == "en" else f"|{boundary}(?:{'|'.join(stems)})"
    codes = "|".join(ISO_639_1.split())
    english = "|".join(_names("en"))
    names = rf"to (?:{codes})(?:[-_][a-z]{{2,4}}\b|\W*$)|\b(?:{english})\b{own}"
    return re.compile(rf"(?=.*(?:{names})){POLITE}(?:{begin})", re.IGNORECASE)


def _names(language: str) -> list[str]:
    """The names that a language has for languages."""
    from babel import Locale

    names = Locale.parse(language).languages.items()
    return [re.escape(name) for code, name in names if code in ISO_639_1.split()]

"""Finds the symbols that a model can't translate, so that its translations carry them over like placeholders.

The training text hardly had such symbols, so the vocabulary spells them in bytes: emoji, notes, arrows, other signs,
and words in scripts that the model does not know.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator

from transduce.inline.events import Event, text_event

PICTURE = r"[\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
# Characters that change how an emoji looks: its colours, a key around it, skin colour, region of a flag.
MODIFIER = r"[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
KEY = "\u20e3"
DIGIT_ON_A_KEY = rf"[0-9#*]\ufe0f?{KEY}"


def symbols_of(unknown: Collection[str]) -> re.Pattern[str] | None:
    """A pattern for symbols with the characters `unknown`; None if there are none. It matches no part of a word."""
    signs = [
        each for each in unknown if unicodedata.category(each) in ("No", "Nl") or _is_sign(each)
    ]
    letters = [each for each in unknown if each.isalnum() and not each.isascii()]
    marks = [each for each in unknown if unicodedata.category(each)[0] == "M"]
    patterns = [DIGIT_ON_A_KEY] if KEY in unknown else []
    if signs:
        sign = f"(?:{_any_of(signs)}|{PICTURE}(?={MODIFIER}))"
        patterns.append(rf"(?:{sign}{MODIFIER}*(?:\u200d{PICTURE}{MODIFIER}*)*)+")
    if letters:
        patterns.append(rf"(?<!\w){_any_of(letters)}{_any_of([*letters, *marks])}*(?!\w)")
    return re.compile("|".join(patterns)) if patterns else None


def with_symbols(events: Iterable[Event], pattern: re.Pattern[str] | None) -> Iterator[Event]:
    """The events of a text, in which symbols are placeholders."""
    for event in events:
        done = 0
        for match in pattern.finditer(event.raw) if pattern and event.kind == "text" else ():
            yield from text_event(event.raw[done : match.start()])
            yield Event("word", match.group(), match.group())
            done = match.end()
        if not done:
            yield event
        else:
            yield from text_event(event.raw[done:])


def _is_sign(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _any_of(characters: Collection[str]) -> str:
    return f"[{re.escape(''.join(sorted(characters)))}]"

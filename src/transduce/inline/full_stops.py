"""Tells full stops of abbreviations, ordinals and dates from those that end a sentence."""

import re
from functools import lru_cache
from importlib.resources import files
from unicodedata import category

# A full stop before a blank, or inside an abbreviation such as U.S., J.-C., Ph.D. or พล.อ.
STOP = re.compile(
    r"\.(?:(?=\s)(?<![a-z]{7}\.)(?<=[^\s.?!…]\.)|(?=[^\W\d_]{1,2}\b)(?:(?<=\b[^\W\d_]\.)|(?<=\bPh\.)"
    r"|(?<=\d\.)(?=[ºª]))|(?=-[^\W\d_]|[\u0900-\u0e7f]))"
)
# A word without opening marks, or a part of a word: "l'art" has two parts.
WORD_PART = re.compile(r"""[^\s"'’«„“”‚‘([{<>*_¿¡/–-](?:(?![-–/(]\w\w|['’](?:[A-Z]|\w\w))\S)*""")
BEHIND = re.compile(r"""\s{1,9}["'«„“”‚‘’([{<>*_¿¡]{0,3}([^\W_]{1,40})(.{0,9})""")
FAR = 40  # number of characters that are read before a full stop
# Each line has a mark and a pattern; the first pattern that matches decides. The mark "," means that the full stop ends
# no sentence, "?" that it ends a sentence, and "." that sentencex decides. Other lines explain. The patterns read
# fields with TABs between them: the word before the full stop, the word behind it, 9 more characters, the two words
# before the first word (the nearer word first), the language, and the category of the text's first character. Each word
# is preceded by its kinds (see abbreviations.txt), the categories of its first two characters and a colon, such as
# "before,LuLl:Dr". NUMBER, LETTER … stand for the patterns of PARTS.
ROLES = r"""
Frequent cases first: words that are in no list
. L[ul]Ll:LETTER{5}
. (?:starter,)*LlLl:(?!CONSONANTS+\t)LETTER+\tCAPITAL.*\tKNOWN
Dates: "3. 10.", "2024. 10.", "10. 2024", and in Korean "2024. 10. 3."
, NUMBER\tDIGIT\w*:\d{1,2}\t\.
, Nd\w*:(?:\d{1,2}\.\d{1,2}\t\w*:\d{2,4}\t|\d{1,2}\t\w*:(?:\d\d|\d{4})\t[^\t]*\t[^\t]*:\d{1,2}\.\t)
, Nd\w*:\d{1,2}\t[a-z,]*Lo[^\t]*\t[^\t]*\t[^\t]*:\d{1,2}\.\t\d{4}\.\t
Ordinals: "3. října", "on 23rd. May", "3. Mai", "den 2. Stock", "1. und 2. Weltkrieg"
, NUMBERSUFFIX?\tLOWER[^\t]*\t[^\t]*\t(?:(?!:\t)|:\t\tORDINALS)
, NUMBERSUFFIX\t(?:[a-z,]*month,|DIGIT\w*:\d{4}\t)
, NUMBER\t[a-z,]*month,[^\t]*\t(?:[.,]?\s\d{4}|[^\t]*\t[^\t]*\t[^\t]*\tORDINALS)
, Nd\w*:\d{1,3}\t(?:[a-z,]*follow,|[^\t]*:ROMAN\t).*\tORDINALS
, Nd\w*:\d{1,3}\t(?![a-z,]*starter)CAPITAL[^\t]*\t[^\t]*\t(?:[a-z,]*ordinal,|[^\t]*\t\d{1,3}\.\tORDINALS)
Roman numbers: "Karel IV. byl", "Johannes Paul II. Er"
? [^\t]*:ROMAN\tSTARTER
, [^\t]*:ROMAN\t[a-z,]*L.*\tORDINALS
Before numbers: "p. 5", "kl. 15"
, (?:[a-z,]*(?:before|inside|number),[^\t]*|[a-z,]*L[ul]:\w)\tDIGIT
, [^\t]*:CONSONANTS{2,4}\tDIGIT[^\t]*\t[^\t]*\t(?!DIGIT)
Before lower case: "e.g. this"
. [a-z,]*word,[a-z,]*Ll[^\t]*\t[a-z,]*Ll
, (?:[a-z,]*(?:before|inside|end|number),[^\t]*|[^\t]*:(?:LETTER|DOTTED|CONSONANTS{2,4}))\tLOWER
, (?:follow,|month,)*(?:LlLl:LETTER{2,3}|LuLl:LETTER{2,4})\tLOWER.*\tLu\Z
Before capitals: "Dr. Smith", "etc. Then", "Inc. They", "Art. IV", "J. Smith", "Ch. Smith"
, [a-z,]*title,[^\t]*\tCAPITAL
. [a-z,]*LuLu:\w+\tCAPITAL
. [a-z,]*Lu:\w\tSTARTER[^\t]*[.:]\t
? [a-z,]*Lu:\w\tSTARTER
, [a-z,]*Lu:\w\tCAPITAL
, [a-z,]*number,[^\t]*\t(?![a-z,]*starter)CAPITAL\w*:(?:(?:\w|[IVXLC]+)\t(?!['’])|\w*\d)
? [a-z,]*word,(?:[a-z,]*Ll[^\t]*\tCAPITAL|[^\t]*\tSTARTER)
, [a-z,]*end,[^\t]*\t[a-z,]*follow,
? [a-z,]*end,[^\t]*\tCAPITAL
? [a-z,]*inside,[^\t]*\tSTARTER
, [a-z,]*(?:inside|before),[^\t]*\tCAPITAL
. (?:number,)*(?:Ll:\w|LuLl:(?i:CONSONANTS{2,3}))\tCAPITAL[^\t]*\t[^\t]*\tDIGIT
? INITIAL\tSTARTER
, INITIAL\tCAPITAL
? [a-z,]*Ll(?:Ll)?:(?!CONSONANTS{1,4}\t)LETTER+\tCAPITAL[^\t]*\t[^\t]*\t[^\t]*\t[^\t]*\t(?!KNOWN)
Before letters without case
? [a-z,]*end,[^\t]*\t[a-z,]*Lo
, (?:[a-z,]*before,[^\t]*|[a-z,]*Lo:[א-תء-يა-ჰ])\t[a-z,]*Lo[^\t]*\t[^\t]*\t(?!DIGIT\w*:\d+\t)
"""
PARTS = r"""
INITIAL [a-z,]*(?:Ll:CONSONANTS|LuLl:(?i:CONSONANTS{2,3})|L\w*:DOTTED)
NUMBER [a-z,]*Nd\w*:(?:\d{1,4}[-–.]{1,2}){0,2}\d{1,4}
STARTER [a-z,]*starter,[a-z,]*Lu[^\t]*\t(?!\.)[^\t]*\t
SUFFIX (?:st|nd|rd|th|er|e|re|ère|ème|[ºª°])
LOWER [a-z,]*Ll\w*:(?!\w*[A-Z])
CAPITAL [a-z,]*L[ut]
DIGIT [a-z,]*Nd
ROMAN (?=\w\w)X{0,3}(?:IX|IV|V?I{0,3})
DOTTED (?:LETTER\.-?)+LETTER
LETTER [^\W\d_]
CONSONANTS [bcdfghjklmnpqrstvwxzßčćçďđģğķľłļňńņřŕšśşșťţțžźżбвгґджзйклмнпрстфхцчшщъьђјљњћџβγδζθκλμνξπρστφχψς]
ORDINALS (?:bs|cs|da|de|dsb|et|eu|fi|fo|gsw|hr|hsb|hu|is|lb|lt|lv|nb|nds|nn|pl|se|sk|sl|sr|sv|tr)\t
KNOWN (?:am|ar|bg|bn|da|de|en|es|fi|fr|gu|hi|it|kk|kn|ml|mr|nl|pa|pl|pt|ru|sk|ta|te|uk)\t
"""


def mark(text: str, language: str) -> str:
    """Replace full stops whose role is known by marks that sentencex understands; the length does not change."""
    return STOP.sub(lambda stop: role(text, stop.start(), language), text)


def role(text: str, place: int, language: str) -> str:
    """The mark of a full stop: "," if it ends no sentence, "?" if it ends a sentence, and "." if sentencex decides."""
    behind = BEHIND.match(text, place + 1)
    if not behind:
        is_paragraph = text.startswith(" §", place + 1)
        return "," if is_paragraph else "." if text[place + 1].isspace() else " "
    kinds = kinds_of_words(language)
    words = ["", "", *WORD_PART.findall(text[max(0, place - FAR) : place])]
    joined = ["".join(words[first:]) for first in (-4, -3, -2) if "." in words[-2]]  # "z." and "B"
    word = next((name for name in joined if name.lower() in kinds), words[-1])
    fields = [word, behind[1], behind[2], *words[-2:-4:-1], language, category(text[0])]
    for field in (0, 1, 3):
        fields[field] = _described(fields[field], kinds)
    marks, pattern = patterns_of_roles()
    line = pattern.match("\t".join(fields))
    return marks[line.lastindex - 1] if line and line.lastindex else "."


def _described(word: str, kinds: dict[str, str]) -> str:
    found = kinds.get(word, "") + kinds.get(word.lower(), "")
    return f"{found}{''.join(map(category, word[:2]))}:{word}"


@lru_cache
def patterns_of_roles() -> tuple[str, re.Pattern[str]]:
    """The marks of the lines of `ROLES`, and a pattern with a group for each line."""
    marks, patterns = zip(*re.findall("(?m)^([,?.]) (.+)$", ROLES), strict=True)
    pattern = "|".join(f"({pattern})" for pattern in patterns)
    for name, part in re.findall("(?m)^([A-Z]+) (.+)$", PARTS):
        pattern = pattern.replace(name, part)
    return "".join(marks), re.compile(pattern)


@lru_cache
def kinds_of_words(language: str) -> dict[str, str]:
    """The kinds of a language's words, each kind followed by a comma."""
    kinds: dict[str, str] = {}
    table = files("transduce.inline").joinpath("abbreviations.txt").read_text("utf-8")
    for line in table.rstrip("\n").split("\n"):
        languages, kind, *words = line.split()
        if {"*", language} & {*languages.split(",")}:
            for word in words:
                kinds[word] = f"{kinds.get(word, '')}{kind},"
    return kinds

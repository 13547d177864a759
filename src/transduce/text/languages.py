"""Finds language codes in file names, and the English names of languages."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Self

ISO_639_1 = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka "
    "kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng "
    "nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su "
    "sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
# Codes in common use, except for frequent parts of other file names: tok, src, tgt, raw, bak, min, new and the like.
ISO_639_3 = (
    "ace afr amh apc ara arb ary arz asm ast awa aym azb aze azj bar bel ben bho bos bre bul cat cdo ceb ces chr "
    "ckb cmn cos crh csb cym dan deu div dsb dzo ell eng epo est eus ewe fao fas fij fil fin fra frp fry fur gla gle "
    "glg grn gsw guj hat hau haw heb hin hmn hrv hsb hun hye ibo ilo ind isl ita jav jpn kab kan kat kaz khk khm kin "
    "kir kmr kok kor lao lat lav lij lim lin lit lmo ltg ltz lug lus lvs mai mal mfe mkd mlg mlt mni mon mri msa mya "
    "nan nds nld nno nob nor npi nso nya oci ori pan pap pcm pes pms pnb pol por prs pus que ron roh run rus sag san "
    "sat scn shn sin slk slv sme smo sna snd som sot spa sqi srd srp ssw sun swa swe swh szl tam tat tel tet tgk tgl "
    "tha tir tpi tsn tso tuk tur tzm udm uig ukr urd uzb uzn vec vie vls vol wol wuu xho yid yor yue zgh zho zsm zul"
)
# The code may be followed by a script and a region: pt, pt-BR, es-419, zh_Hans, sr-Latn-RS.
_CODES = "|".join([*ISO_639_1.split(), *ISO_639_3.split()])
LANGUAGE_CODE = re.compile(
    f"(?:{_CODES})(?:[-_][A-Za-z]{{4}})?(?:[-_](?:[A-Za-z]{{2,3}}|[0-9]{{3}}))?"
)
SCRIPTS = (  # script codes of ISO 15924 in common use
    "adlm arab armn beng cyrl deva ethi geor grek gujr guru hang hani hans hant hebr hira hrkt jpan kana khmr knda "
    "kore laoo latn mlym mong mtei mymr nkoo olck orya sinh syrc taml telu tfng thaa thai tibt"
)
# Region -> script.
CHINESE_SCRIPTS = {
    "cn": "hans",
    "sg": "hans",
    "my": "hans",
    "tw": "hant",
    "hk": "hant",
    "mo": "hant",
}
LIBRETRANSLATE_CODES = {"zt": "zh-Hant", "pb": "pt-BR"}  # Argos Translate has these codes, too
ALIASES = {"no": "nb", "tl": "fil"}  # ISO 639-1 has codes for both of no and nb


class Direction(NamedTuple):
    """The codes of a source language and a target language."""

    source: str
    target: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """The direction that a text such as "en-de" names."""
        source, _, target = text.partition("-")
        return cls(source, target)

    @property
    def as_codes(self) -> Self:
        """The direction with "_" for "-" in its codes, because "-" separates them: pt_BR-en."""
        return type(self)(*(code.replace("-", "_") for code in self))

    @property
    def reverse(self) -> Self:
        """The opposite direction."""
        return type(self)(self.target, self.source)

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def target_of(direction: str) -> str:
    """The target language of a direction such as "en-de", or "" for "", the direction of a model that has only one."""
    return Direction.parse(direction).target


def language_of(file: str) -> str:
    """The last language code in a name such as train.en.gz, or ""."""
    return next(filter(LANGUAGE_CODE.fullmatch, Path(file).name.split(".")[:0:-1]), "")


def languages_of(files: Sequence[str]) -> tuple[str, str] | None:
    """The language codes in two names such as train.en and train.de, or None if the codes are missing or equal."""
    codes = list(map(language_of, files))
    return (codes[0], codes[1]) if len(codes) == 2 and all(codes) and codes[0] != codes[1] else None


def nearest_code(code: str, among: Iterable[str]) -> str | None:
    """The equal code, or else the most similar code of the same language; None if there is no such code.

    Case is ignored, and "_" equals "-": "EN" and "en-US" are like "en", "pt" is like "pt_BR", and "deu" like "de".
    LibreTranslate's "zt" is like "zh_Hant". But "zh-TW" is not like "zh_Hans", since their scripts differ.
    """
    wanted = _subtags(code)
    script = script_of(code)

    def likeness(other: str) -> tuple[bool, bool, int]:
        tags = _subtags(other)
        usual = (script,) if script else ("", "hans")  # plain zh is like zh_Hans
        return tags == wanted, script_of(other) in usual, len({*tags} & {*wanted})

    same = [each for each in among if main_language(each) == main_language(code)]
    return max(
        (each for each in same if not script or script_of(each) in ("", script)),
        key=likeness,
        default=None,
    )


@lru_cache(maxsize=1000)
def main_language(code: str) -> str:
    """A language code without its region or script, in lower case and, with Babel, in its usual form.

    The result is zh for "zh_Hant", de for "deu", and he for "iw".
    """
    plain = _subtags(code)[0]
    if plain not in ISO_639_1.split():
        with suppress(ImportError):
            from babel.core import get_global

            plain = _subtags(get_global("language_aliases").get(plain, plain))[0]
    return ALIASES.get(plain, plain)


@lru_cache(maxsize=1000)
def script_of(code: str) -> str:
    """The script that a language code names, in lower case, or that its region implies for Chinese; or ""."""
    tags = _subtags(code)[1:]
    implied = [CHINESE_SCRIPTS.get(tag, "") for tag in tags if main_language(code) == "zh"]
    return next(filter(None, [*(tag for tag in tags if tag in SCRIPTS.split()), *implied]), "")


def _subtags(code: str) -> list[str]:
    return LIBRETRANSLATE_CODES.get(code.lower(), code).replace("_", "-").casefold().split("-")


def language_name(code: str) -> str:
    """The English name of a language code such as "de" or "pt-BR", or the code itself if the name is unknown."""
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        return code
    try:
        first, *others = _subtags(code)
        # Otherwise, the name would contain the usual region.
        first = first if first == "no" else main_language(code)
        return Locale.parse("-".join([first, *others]), sep="-").get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code

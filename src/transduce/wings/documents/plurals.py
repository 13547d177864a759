"""How many plural forms a language has in gettext, and which of them is for what number."""

import re
from gettext import c2py
from typing import NamedTuple

RULES = {  # as gettext's manual has them, by the languages that they are for
    "nplurals=1; plural=0;": "ja ko zh vi th id ms lo my km",
    "nplurals=2; plural=n != 1;": (
        "en de nl sv da no nb nn fo es pt it el bg fi et he hu eo ca gl eu af sq az bn gu kn ml mr ne or pa ps "
        "sd so sw ta te ur fy ia lb mn rm nah st tk zu kk ky uz tt tr ku"
    ),
    "nplurals=2; plural=n > 1;": "fr pt_br ak am ln mg mi oc tg ti wa hy fa hi fil",
    "nplurals=2; plural=n%10!=1 || n%100==11;": "is mk",
    "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2;": "lv",
    "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2;": "lt",
    "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;": (
        "ru uk be sr hr bs sh"
    ),
    "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;": "cs sk",
    "nplurals=3; plural=n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;": "pl",
    "nplurals=3; plural=n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2;": "ro mo",
    "nplurals=4; plural=n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3;": "sl",
    "nplurals=5; plural=n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4;": "ga",
    "nplurals=4; plural=(n==1 || n==11) ? 0 : (n==2 || n==12) ? 1 : (n>2 && n<20) ? 2 : 3;": "gd",
    "nplurals=4; plural=(n==1) ? 0 : (n==2) ? 1 : (n != 8 && n != 11) ? 2 : 3;": "cy",
    "nplurals=4; plural=n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : (n%100>10 && n%100<20) ? 2 : 3;": "mt",
    "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;": "ar",
}


class Plurals(NamedTuple):
    """How many forms there are, and which is for one thing."""

    number: int
    singular: int | None  # None: there is one form for every number


def plurals(header: str, language: str) -> Plurals:
    """By the Plural-Forms of a file's header if it has them, else by the language; most have two."""
    return _parse(header) or _parse(_rule(language)) or Plurals(2, 0)


def _rule(language: str) -> str:
    code = language.lower().replace("-", "_")
    for name in (code, code.split("_")[0]):
        for rule, languages in RULES.items():
            if name in languages.split():
                return rule
    return ""


def _parse(rule: str) -> Plurals | None:
    """What a rule says; None if it is none, such as the template's "nplurals=INTEGER; plural=EXPRESSION;"."""
    found = re.search(r"nplurals\s*=\s*(\d)\s*;\s*plural\s*=\s*([^;\n]+)", rule)
    if found is None or found[1] == "0":
        return None
    count = int(found[1])
    try:
        singular = c2py(found[2].strip())(1)
    except (ValueError, RecursionError, ZeroDivisionError):
        return None
    return Plurals(count, singular if count > 1 and 0 <= singular < count else None)

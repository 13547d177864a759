"""Compares the numbers in a text with those in its translation."""

import re

NUMBER = re.compile(r"\d+")
# 1,00,000.
THOUSANDS_SEPARATOR = re.compile(
    r"(?<=\d)[.,'’٬ \u00a0\u2009\u202f](?=(?:(?<=,)(?:\d\d,)+)?\d{3}(?!\d))"
)


def same_numbers(source: str, translation: str) -> bool:
    """Whether both texts contain the same numbers. Separators are ignored, as in 3.5 and 3,5."""
    return any(
        sorted(digits(source, without_thousands)) == sorted(digits(translation, without_thousands))
        for without_thousands in (False, True)
    )


def digits(text: str, without_thousands: bool) -> list[str]:
    """The numbers in a text, in the digits 0 to 9."""
    found = NUMBER.findall(THOUSANDS_SEPARATOR.sub("", text) if without_thousands else text)
    return ["".join(str(int(digit)) for digit in number) for number in found]

"""Finds pairs whose numbers disagree."""

from collections import Counter

from transduce.inline.numbers import digits

MAX_NUMBER_DIGITS = 30  # a longer number is a code, which is compared as text
HALF_DAY_HOURS = 12


def numbers_disagree(source: str, translation: str) -> bool:
    """Whether each text has a number that the other text lacks.

    The result is False if only one text has an extra number, because the other text may spell the number in words.
    Numbers agree if they differ only in separators, leading zeros, hour format (2 and 14) or century (98 and 1998).
    """
    return all(
        _contradict(_numbers(source, without_thousands), _numbers(translation, without_thousands))
        for without_thousands in (False, True)
    )


def _numbers(text: str, without_thousands: bool) -> Counter[str]:
    numbers = digits(text, without_thousands)
    return Counter(
        str(int(number)) if len(number) <= MAX_NUMBER_DIGITS else number for number in numbers
    )


def _contradict(source: Counter[str], translation: Counter[str]) -> bool:
    source_only = list((source - translation).elements())
    translation_only = list((translation - source).elements())
    for number in list(source_only):
        match = next((other for other in translation_only if _may_agree(number, other)), None)
        if match is not None:
            source_only.remove(number)
            translation_only.remove(match)
    return bool(source_only and translation_only)


def _may_agree(number: str, other: str) -> bool:
    short, long = sorted((number, other), key=len)
    if len(short) == 2 and len(long) == 4 and long.endswith(short):
        return True
    if len(long) > 2:  # no hour; a code may be too long for int()
        return False
    hours = int(number), int(other)
    return abs(hours[0] - hours[1]) == HALF_DAY_HOURS and min(hours) <= HALF_DAY_HOURS

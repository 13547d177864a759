"""Numbers that contradict each other in a text and its translation."""

from collections import Counter

from transduce.text.placeholders import NUMBER, THOUSANDS

MAX_NUMBER_DIGITS = 30  # more digits are a code
HALF_DAY_HOURS = 12


def numbers_disagree(source: str, translation: str) -> bool:
    """Whether each side has a number that the other lacks.

    If only one side has such a number, the other side may have it in words. Equal are other signs for thousands and
    decimals (3.5 and 3,5), leading zeros, hours after noon (2 and 14), and years without a century (98 and 1998).
    """
    return all(
        _contradict(_numbers(source, thousands), _numbers(translation, thousands)) for thousands in (False, True)
    )


def _numbers(text: str, thousands: bool) -> Counter[str]:
    numbers = NUMBER.findall(THOUSANDS.sub("", text) if thousands else text)
    return Counter(str(int(n)) if len(n) <= MAX_NUMBER_DIGITS else n for n in numbers)


def _contradict(source: Counter[str], translation: Counter[str]) -> bool:
    left, right = list((source - translation).elements()), list((translation - source).elements())
    for number in list(left):
        same = next((other for other in right if _may_be_same(number, other)), None)
        if same is not None:
            left.remove(number)
            right.remove(same)
    return bool(left and right)


def _may_be_same(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) == 2 and len(long) == 4 and long.endswith(short):
        return True
    return (
        len(long) <= 2 and abs(int(one) - int(other)) == HALF_DAY_HOURS and min(int(one), int(other)) <= HALF_DAY_HOURS
    )

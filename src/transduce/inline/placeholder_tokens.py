"""Replaces placeholders with placeholder tokens, for models that were trained on these tokens.

Models often miscopy placeholders such as `{0}`. The tokens are a few rare characters that models learn to copy.
"""

import re
from collections import Counter

from transduce.config.schema import PLACEHOLDER_TOKENS
from transduce.inline.blocks import spaced
from transduce.inline.placeholders import Mark, Masked, Patch, mask, replace

ANY_TOKEN = re.compile(f"[{PLACEHOLDER_TOKENS}]")
# The part of a placeholder that shows its kind.
PLACEHOLDER_PREFIX = re.compile(r"https?|[^\w`]*(?:[A-Za-z][\w:.+-]*:(?=`))?`*")


def with_tokens(masked: Masked) -> Masked:
    """Replace placeholders with tokens, unless the text already contains tokens."""
    return masked if _has_tokens(masked) else _replaced(masked, _tokens(masked.words))


def with_shared_tokens(source: str, target: str) -> tuple[str, str] | None:
    """Replace matching placeholders of a source and a target with the same token.

    Equal placeholders match. Placeholders of the same kind also match, such as `:term:`bit`` and `:term:`octet <bit>``.
    Returns None if a placeholder has no match or a text already contains tokens.
    """
    masked_source = mask(source)
    masked_target = mask(target)
    if _has_tokens(masked_source) or _has_tokens(masked_target):
        return None
    source_words = masked_source.words
    target_words = masked_target.words
    tokens = _tokens(source_words)
    target_tokens = _tokens(target_words)
    unmatched: dict[str, list[str]] = {}  # the source's placeholders by kind, in reverse order
    for raw in reversed([raw for raw in tokens if raw not in target_tokens]):
        unmatched.setdefault(_kind(raw), []).append(raw)
    for raw in target_tokens:
        if raw not in tokens and (same_kind := unmatched.get(_kind(raw))):
            tokens[raw] = tokens[same_kind.pop()]
    if Counter(tokens[mark.opening] for mark in source_words) != Counter(
        tokens.get(mark.opening) for mark in target_words
    ):
        return None
    return spaced(_replaced(masked_source, tokens)), spaced(_replaced(masked_target, tokens))


def have_same_tokens(source: str, target: str) -> bool:
    """Whether both texts contain each token equally often."""
    return sorted(ANY_TOKEN.findall(source)) == sorted(ANY_TOKEN.findall(target))


def stray_tokens(text: str, translation: str) -> list[Patch]:
    """Return patches that delete tokens from `translation` if `text` lacks these tokens."""
    strays = [
        match.start() for match in ANY_TOKEN.finditer(translation) if match.group() not in text
    ]
    return [Patch(place - translation[:place].endswith(" "), place + 1, "") for place in strays]


def _kind(raw: str) -> str:
    match = PLACEHOLDER_PREFIX.match(raw)
    return match.group() if match else ""


def _tokens(words: list[Mark]) -> dict[str, str]:
    """Map each distinct placeholder to a token."""
    distinct = dict.fromkeys(mark.opening for mark in words)
    return {
        raw: PLACEHOLDER_TOKENS[number % len(PLACEHOLDER_TOKENS)]
        for number, raw in enumerate(distinct)
    }


def _has_tokens(masked: Masked) -> bool:
    """Whether the text contains tokens outside its placeholders."""
    return bool(ANY_TOKEN.search(masked.rest))


def _replaced(masked: Masked, tokens: dict[str, str]) -> Masked:
    return replace(
        masked, [Patch(mark.begin, mark.end, tokens[mark.opening]) for mark in masked.words]
    )

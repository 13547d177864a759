"""Texts of many sentences: taken apart, and put together again from translations of their sentences.

What isn't text in a text, tags and placeholders, is masked on the way and put back. Who translates the sentences, and
with which others in one batch, is up to the caller: `Translator.translate` or a server.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from transduce.decoding.types import BLANK_TRANSLATION, PLAIN, Link, Translation, TranslationOptions
from transduce.text.inline import TextKind, speller
from transduce.text.numbers import same_numbers
from transduce.text.placeholder_removal import without_words
from transduce.text.placeholder_tokens import stray_tokens, with_tokens
from transduce.text.placeholders import (
    Masked,
    cut,
    has_words,
    in_place,
    intact,
    is_text,
    mask,
    moved,
    original,
    whole_words,
)
from transduce.text.placing import copied, restore
from transduce.text.segments import Segments, join, shorten, split, whole
from transduce.tokens.spans import Span

# Flags of texts that need a look, beside CUT.
LOST = "placeholders"  # a tag or a placeholder is missing, or there more than once
GUESSED = "guessed"  # the place of a tag or a placeholder is a guess
OTHER_NUMBERS = "numbers"  # the numbers differ from those of the source
IN_PARTS = "split"  # a sentence was too long, and was translated in parts
LONG = "long"  # something was too long all the same, and wasn't translated

Lengths = Callable[[Sequence[str]], Sequence[int]]  # of texts, in tokens


class Group(NamedTuple):
    """Sentences of a plan that are searched in the same way."""

    options: TranslationOptions
    places: list[int]  # in Plan.sentences


class _Part(NamedTuple):
    """A sentence, or a part of one that is too long."""

    source: str
    tries: list[tuple[Masked, int]]  # forms to translate, best first, with their places in Plan.sentences; none: a copy
    flags: tuple[str, ...]


class _Text(NamedTuple):
    """A text: its parts and the gaps between them."""

    source: str
    kind: TextKind
    spell: Callable[[str], str]  # escapes characters that would be markup
    gaps: list[str]
    parts: list[_Part]
    placeholder_tokens: bool


class Plan:
    """The sentences of texts, to be translated in any way that gives a Translation for each, in order.

    language: by which texts are split into sentences; None: each text is one sentence. kinds: of the texts, by default
    plain. A sentence of more than `max_length` tokens is translated in parts. A sentence with placeholders is there
    twice, with and without them: the first counts if they are copied. placeholder_tokens: the model was
    trained on them (see Tokenizer.has_placeholder_tokens). can_align: tags may find their places by links.
    """

    def __init__(
        self,
        texts: Sequence[str],
        language: str | None = None,
        *,
        options: TranslationOptions = PLAIN,
        kinds: Sequence[TextKind] | None = None,
        lengths: Lengths | None = None,
        max_length: int | None = None,
        placeholder_tokens: bool = False,
        beam_size: int = 1,
        can_align: bool = True,
    ) -> None:
        self.sentences: list[str] = []
        self.options = options
        self._beam_size, self._can_align = beam_size, can_align
        self._uses_tokens = placeholder_tokens
        kinds = kinds or ["plain"] * len(texts)
        masked = [
            self._masked(mask(text, markup=kind != "plain", preserve=kind == "preserved"))
            for text, kind in zip(texts, kinds, strict=True)
        ]
        spans = [_spans(split(each.text, language) if language else whole(each.text)) for each in masked]
        parts = [[[span] for span in places] for places in spans]
        self._fits: Callable[[str], bool] = lambda _: True
        if lengths and max_length:
            parts = _in_parts(masked, spans, lengths, max_length)
            self._fits = lambda text: lengths([text])[0] <= max_length
        self._texts = [
            self._text(text, kind, speller(text) if kind != "plain" else str, each, within)
            for text, kind, each, within in zip(texts, kinds, masked, parts, strict=True)
        ]

    @property
    def groups(self) -> list[Group]:
        """The sentences by what their search must return.

        A placeholder needs the whole beam, for any hypothesis may have copied it; a tag needs links. Both take time.
        """
        groups: dict[TranslationOptions, list[int]] = {}
        forms = (masked for text in self._texts for part in text.parts for masked, _ in part.tries)
        for place, (_, marks) in enumerate(forms):
            options = self.options
            if marks:
                has_tags = any(mark.kind != "word" for mark in marks)
                align = options.align or (has_tags and self._can_align)
                options = options._replace(n_best=max(options.n_best, self._beam_size), align=align)
            groups.setdefault(options, []).append(place)
        return [Group(*group) for group in groups.items()]

    def translate(
        self,
        translate: Callable[[list[str], TranslationOptions, list[int]], list[Translation]],
        numbers: Sequence[int],
    ) -> list[Translation]:
        """Translations of `sentences`, group by group; numbers: those of the texts in messages."""
        text_of = [i for i, text in enumerate(self._texts) for part in text.parts for _ in part.tries]
        translations = [BLANK_TRANSLATION] * len(self.sentences)
        for options, places in self.groups:
            sentences = [self.sentences[place] for place in places]
            translated = translate(sentences, options, [numbers[text_of[place]] for place in places])
            for place, translation in zip(places, translated, strict=True):
                translations[place] = translation
        return translations

    def assemble(self, translations: Sequence[Translation]) -> list[Translation]:
        """The translations of the texts, from those of `sentences`; raises ValueError if they are more or fewer.

        If a sentence's best translation lacks a placeholder, its first alternative that has them all counts. The score
        of a text is the mean of its sentences' scores; its tokens are theirs, one after the other. The n-th alternative
        of a text is made of the n-th of each sentence, or of its last; equal ones count once, and there are at most
        n_best - 1. Links are those of the sentences, moved to their places in the texts; markup whose blanks don't
        count has none.
        """
        if len(translations) != len(self.sentences):
            raise ValueError(f"{len(translations)} translations of {len(self.sentences)} sentences")
        texts = [_assembled(text, translations, self.options.n_best) for text in self._texts]
        return texts if self.options.align else list(map(_without_links, texts))

    def _masked(self, masked: Masked) -> Masked:
        return with_tokens(masked) if self._uses_tokens else masked

    def _text(
        self, text: str, kind: TextKind, spell: Callable[[str], str], masked: Masked, parts: list[list[Span]]
    ) -> _Text:
        """Take a text apart, and add its sentences to those of the others."""
        in_parts = {begin for spans in parts if len(spans) > 1 for begin, _ in spans}
        spans = whole_words(masked, [span for spans in parts for span in spans])
        gaps, sentences = cut(masked, spans, spell)
        return _Text(
            text,
            kind,
            spell,
            gaps,
            [self._part(each, spell, begin in in_parts) for each, (begin, _) in zip(sentences, spans, strict=True)],
            self._uses_tokens,
        )

    def _part(self, masked: Masked, spell: Callable[[str], str], in_parts: bool) -> _Part:
        source = original(masked, spell)
        if not is_text(masked):
            return _Part(source, [], ())
        forms = [self._masked(masked), without_words(masked)] if has_words(masked) else [masked]
        if len(forms) > 1 or in_parts:  # a word with a mark isn't cut up, and a character can't be
            forms = [form for form in forms if self._fits(form.text)]
        first = len(self.sentences)
        self.sentences += [form.text for form in forms]
        flags: tuple[str, ...] = (LONG,)
        if forms:
            flags = (IN_PARTS,) if in_parts else ()
        return _Part(source, list(zip(forms, range(first, first + len(forms)), strict=True)), flags)


def _without_links(translation: Translation) -> Translation:
    """Links that were only needed to place tags are not returned."""
    return replace(translation, links=(), alternatives=tuple(map(_without_links, translation.alternatives)))


def _spans(segments: Segments, begin: int = 0) -> list[Span]:
    """The span of each sentence of a text that starts at `begin`."""
    spans = list[Span]()
    for separator, sentence in zip(segments.separators, segments.sentences, strict=False):
        begin += len(separator)
        spans.append((begin, begin + len(sentence)))
        begin += len(sentence)
    return spans


def _in_parts(
    masked: Sequence[Masked], spans: Sequence[Sequence[Span]], lengths: Lengths, max_length: int
) -> list[list[list[Span]]]:
    """Each sentence of each text as the spans of its parts, one unless it is too long; all are measured at once."""
    sentences = [each.text[begin:end] for each, places in zip(masked, spans, strict=True) for begin, end in places]
    measured = iter(zip(sentences, lengths(sentences), strict=True))
    parts: list[list[list[Span]]] = []
    for places in spans:
        parts.append([])
        for span, (sentence, length) in zip(places, measured, strict=False):
            is_long = length > max_length
            parts[-1].append(_spans(shorten(sentence, lengths, max_length), span[0]) if is_long else [span])
    return parts


def _assembled(text: _Text, translations: Sequence[Translation], n_best: int) -> Translation:
    """A text of its sentences' translations, with alternatives."""
    best = _ranked(text, translations, 0)
    used = [translations[place] for part in text.parts for _, place in part.tries]
    count = min(max((len(each.alternatives) for each in used), default=0), n_best - 1)
    by_text = {best.text: best}
    for rank in range(1, count + 1):
        other = _ranked(text, translations, rank)
        by_text.setdefault(other.text, other)
    return replace(best, alternatives=tuple(by_text.values())[1:])


def _ranked(text: _Text, translations: Sequence[Translation], rank: int) -> Translation:
    """A text of the translations of a rank: 0 is the best of each sentence."""
    parts = [_translated(part, text, translations, rank) for part in text.parts]
    written = join(text.gaps, [part.text for part in parts])
    flags = dict.fromkeys(flag for part in parts for flag in part.flags)
    if not intact(text.source, written, markup=text.kind != "plain"):
        flags[LOST] = None
    scores = [translated.score for part, translated in zip(text.parts, parts, strict=True) if part.tries]
    tokens = tuple(token for part in parts for token in part.tokens)
    score = sum(scores) / max(1, len(scores))
    return Translation(written, score, tokens, flags=tuple(flags), links=tuple(_links(text, parts)))


def _links(text: _Text, translated: Sequence[Translation]) -> Iterator[Link]:
    """The links of the parts, moved to their places in the whole text."""
    in_source = in_target = 0
    for gap, part, translation in zip(text.gaps, text.parts, translated, strict=False):
        in_source, in_target = in_source + len(gap), in_target + len(gap)
        for (begin, end), (first, last), weight in translation.links:
            yield Link((in_source + begin, in_source + end), (in_target + first, in_target + last), weight)
        in_source, in_target = in_source + len(part.source), in_target + len(translation.text)


def _translated(part: _Part, text: _Text, translations: Sequence[Translation], rank: int) -> Translation:
    """A part with everything that isn't text: the first try in which all of it is kept, else the last."""
    # The last try always succeeds unless it was too long: it has no placeholders to lose.
    result = Translation(part.source, 0.0, (), flags=(*part.flags, LONG) if part.tries else part.flags)
    for masked, place in part.tries:
        candidates = [translations[place], *translations[place].alternatives]
        complete = [each for each in candidates if copied(masked, each.text)]
        if rank or not masked.marks:
            complete = [each for each in [candidates[min(rank, len(candidates) - 1)]] if each in complete]
        restored = (_restored(part, text, masked, each) for each in complete)
        first = next(restored, result)
        result = next((each for each in chain((first,), restored) if LOST not in each.flags), first)
        if complete and LOST not in result.flags:
            break
    return result


def _restored(part: _Part, text: _Text, masked: Masked, translation: Translation) -> Translation:
    """A part of the translation of its masked form."""
    made_up = stray_tokens(masked.text, translation.text) if text.placeholder_tokens else []
    restored = restore(masked, translation.text, translation.links, text.spell, without=made_up)
    flags = {
        LOST: bool(made_up) or not intact(part.source, restored.text, markup=text.kind != "plain"),
        GUESSED: restored.guessed,
        OTHER_NUMBERS: not same_numbers(masked.text, translation.text),
    }
    links: list[Link] = []
    if text.kind != "markup" and original(masked, text.spell) == part.source:  # or places in the source are unknown
        patches = in_place(masked)
        for link in translation.links:
            source = moved(masked.text, patches, link.source, text.spell)
            links.append(Link(source, restored.moved(link.target), link.weight))
    return replace(
        translation,
        text=restored.text,
        alternatives=(),
        flags=(*part.flags, *translation.flags, *(flag for flag, is_true in flags.items() if is_true)),
        links=tuple(links),
    )

"""Splits texts into sentences before translation, and joins the translated sentences afterwards.

Tags and placeholders are masked before translation and restored afterwards.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, repeat
from typing import NamedTuple, TypeVar

from transduce.config.commands import option
from transduce.decoding.recall import known, recall
from transduce.decoding.types import (
    BLANK_TRANSLATION,
    EMPTY,
    PLAIN,
    TERM,
    UNTRANSLATED,
    Guide,
    Guides,
    Link,
    MemoryMatch,
    TermFinder,
    Translation,
    TranslationMemory,
    TranslationOptions,
)
from transduce.inline.blocks import cut_at_blocks
from transduce.inline.events import WITH_BRANCHES
from transduce.inline.gaps import target_gaps
from transduce.inline.markup import speller
from transduce.inline.numbers import same_numbers
from transduce.inline.placeholder_removal import is_text, without_words
from transduce.inline.placeholder_tokens import (
    ANY_TOKEN,
    stray_tokens,
    with_shared_tokens,
    with_tokens,
)
from transduce.inline.placeholders import (
    Masked,
    Patch,
    cut,
    in_place,
    intact,
    mask,
    moved,
    original,
    weave,
)
from transduce.inline.placing import copied, restore
from transduce.inline.segments import shorten, split, whole, whole_words
from transduce.inline.symbols import symbols_of
from transduce.text.formats import MARKUP_TEXT, PLAIN_TEXT, TextKind
from transduce.tokens.spans import Span

# Flags of texts that need checking, in addition to CUT.
LOST = "placeholders"  # a tag or a placeholder is missing, repeated or made up
GUESSED = "guessed"  # the place of a tag or a placeholder is a guess
OTHER_NUMBERS = "numbers"  # the translation has other numbers than the source
IN_PARTS = "split"  # a sentence was too long and was translated in parts
LONG = "long"  # a part that can't be cut further was too long and wasn't translated

T = TypeVar("T")
Lengths = Callable[[Sequence[str]], Sequence[int]]  # measures texts in tokens


class Group(NamedTuple):
    """Sentences of a plan that are translated with the same options."""

    options: TranslationOptions
    places: list[int]  # indices in Plan.sentences
    texts: list[int]  # for each sentence, the index of its text

    def select(self, values: Sequence[T]) -> list[T]:
        """The values of these sentences. `values` holds one value for each sentence of the plan."""
        return [values[place] for place in self.places]


class _Part(NamedTuple):
    """A sentence, or a piece of a sentence that is too long."""

    source: str
    guide: Guide
    # The masked forms, best first, with their indices in Plan.sentences; if empty, the source is copied.
    tries: list[tuple[Masked, int]]
    flags: tuple[str, ...]
    matches: tuple[MemoryMatch, ...] = ()  # looked up only if the text has several parts
    known: Translation | None = None  # the translation memory's


class _Text(NamedTuple):
    """The parts of a text, and the gaps around these parts."""

    source: str
    kind: TextKind
    guide: Guide
    spell: Callable[[str], str]  # escapes characters that would be markup
    gaps: list[str]
    parts: list[_Part]


class Plan:
    """Splits texts into sentences. `assemble` joins the translated sentences into texts.

    If `language` is None, each text is one sentence. If `kinds` is None, all texts are plain. A sentence of more than
    `max_length` tokens is cut into parts. A sentence with placeholders is translated with and without placeholders.
    `can_align` tells whether the engine aligns words, and `placeholder_tokens` whether the model was trained on
    placeholder tokens. `unknown` are characters that the model can't translate. `direction` is that of the translation
    memory.
    """

    def __init__(
        self,
        texts: Sequence[str],
        language: str | None = None,
        *,
        options: TranslationOptions = PLAIN,
        kinds: Sequence[TextKind] | None = None,
        guides: Guides = None,
        lengths: Lengths | None = None,
        max_length: int | None = None,
        placeholder_tokens: bool = False,
        beam_size: int = 1,
        can_align: bool = True,
        unknown: Collection[str] = (),
        direction: str = "",
    ) -> None:
        self.sentences: list[str] = []
        self.guides: list[Guide] = []  # of the sentences
        self.options = options
        self._language = language or ""
        self._beam_size = beam_size
        self._can_align = can_align
        self._uses_tokens = placeholder_tokens
        self._lengths = lengths
        self._max_length = max_length
        self._symbols = symbols_of(unknown) if unknown else None
        terms = ((source.strip(), target.strip()) for source, target in options.glossary)
        self._changed = {source for source, target in terms if source != target}
        kinds = kinds or [PLAIN_TEXT] * len(texts)
        self._all = list(zip(texts, kinds, guides or repeat(Guide()), strict=False))
        # Repeated texts are planned once.
        self._first = {text: i for i, text in reversed([*enumerate(self._all)])}
        distinct = sorted(self._first, key=self._first.__getitem__)
        masked = [self._masked(*text) for text in distinct]
        spans = [
            cut_at_blocks(each, split(each.text, language))
            if language and not guide.suffix
            else whole(each.text)
            for each, (_, _, guide) in zip(masked, distinct, strict=True)
        ]
        # Measuring all sentences in one call is faster.
        long = self._too_long(
            [
                each.text[slice(*span)]
                for each, its in zip(masked, spans, strict=True)
                for span in its
            ]
        )
        planned = zip(distinct, masked, spans, strict=True)
        self._texts = {text: self._text(*text, each, its, long) for text, each, its in planned}
        if options.translation_memory:
            self._recall(options.translation_memory, direction)

    @cached_property
    def groups(self) -> list[Group]:
        """The sentences, grouped by their translation options."""
        groups: dict[TranslationOptions, Group] = {}
        for key, text in self._texts.items():
            for part in text.parts:
                for masked, place in part.tries:
                    words = masked.words  # which the best hypothesis may lack
                    has_tags = len(words) < len(masked.marks)
                    options = self.options._replace(
                        translation_memory=None,
                        n_best=max(self.options.n_best, self._beam_size if words else 0),
                        align=self.options.align or (has_tags and self._can_align),
                    )
                    group = groups.setdefault(options, Group(options, [], []))
                    group.places.append(place)
                    group.texts.append(self._first[key])
        return list(groups.values())

    def translate(
        self, translate: Callable[..., list[Translation]], numbers: Sequence[int]
    ) -> list[Translation]:
        """Translate `sentences` by `translate(some, options, numbers, guides)`; messages show the texts' numbers."""
        translated = []
        for group in self.groups:
            of_texts = [numbers[text] for text in group.texts]
            given = group.select(self.sentences), group.options, of_texts
            translated.append(translate(*given, group.select(self.guides)))
        return self.placed(translated)

    def placed(self, translated: Sequence[Sequence[Translation]]) -> list[Translation]:
        """Put the translations of the groups' sentences in the order of `self.sentences`."""
        translations = [BLANK_TRANSLATION] * len(self.sentences)
        for group, its in zip(self.groups, translated, strict=True):
            for place, translation in zip(group.places, its, strict=True):
                translations[place] = translation
        return translations

    def assemble(self, translations: Sequence[Translation]) -> list[Translation]:
        """Join translated sentences into texts. Raises ValueError if the number of translations is wrong.

        If a sentence's best hypothesis lacks a placeholder, the first hypothesis with all placeholders is used. The
        score of a text is the mean score of its sentences. The n-th alternative of a text joins the n-th (or last)
        alternatives of its sentences. The offsets of links refer to the whole texts. Texts of the kind
        MARKUP_TEXT have no links.
        """
        if len(translations) != len(self.sentences):
            raise ValueError(f"{len(translations)} translations of {len(self.sentences)} sentences")
        joined = {key: self._assembled(text, translations) for key, text in self._texts.items()}
        return [joined[key] for key in self._all]

    def _masked(self, text: str, kind: TextKind, guide: Guide) -> Masked:
        masked = mask(text, kind, self._symbols)
        # A tag could come before the given characters.
        if guide.is_typed and len(masked.words) < len(masked.marks):
            return Masked(text, ())
        return self._with_tokens(masked)

    def _with_tokens(self, masked: Masked) -> Masked:
        return with_tokens(masked) if self._uses_tokens else masked

    def _too_long(self, texts: Sequence[str]) -> set[str]:
        if not (self._lengths and self._max_length):
            return set()
        return {
            text
            for text, length in zip(texts, self._lengths(texts), strict=True)
            if length > self._max_length
        }

    def _text(
        self,
        text: str,
        kind: TextKind,
        guide: Guide,
        masked: Masked,
        sentences: Sequence[Span],
        long: set[str],
    ) -> _Text:
        """Split a text into parts, and add the masked texts of the parts to `self.sentences`."""
        spell = speller(text) if kind.markup else str
        # A cut must not be inside a placeholder.
        uncut = weave(
            masked.text,
            [Patch(word.begin, word.end, "_" * (word.end - word.begin)) for word in masked.words],
        )
        spans = list[Span]()
        in_parts = set[int]()  # where the parts of too long sentences begin
        for begin, end in sentences:
            if masked.text[begin:end] in long and self._lengths and self._max_length:
                shorter = shorten(uncut, (begin, end), self._lengths, self._max_length)
                in_parts |= {begin for begin, _ in shorter}
                spans += shorter
            else:
                spans.append((begin, end))
        spans = whole_words(masked, spans)
        gaps, cuts = cut(masked, spans, spell)
        its = [guide]
        if len(cuts) > 1:
            its = [Guide()] * len(cuts)
            its[0] = Guide(prefix=guide.prefix)
            its[-1] = Guide(suffix=guide.suffix)
        parts = [
            self._part(each, spell, begin in in_parts, known)
            for each, (begin, _), known in zip(cuts, spans, its, strict=False)
        ]
        return _Text(text, kind, guide, spell, gaps, parts)

    def _recall(self, memory: TranslationMemory, direction: str) -> None:
        """Look up the sentences of texts that have several. Whole texts are looked up before they are planned."""
        several = [text for text in self._texts.values() if len(text.parts) > 1]
        sources = [part.source for text in several for part in text.parts]
        kinds = [text.kind for text in several for _ in text.parts]
        guides = [part.guide for text in several for part in text.parts]
        found = recall(memory, sources, direction, kinds, guides)
        places = iter(range(len(sources)))
        for text in several:
            for i, (part, place) in enumerate(zip(text.parts, places, strict=False)):
                its = found.matches[place]
                text.parts[i] = part._replace(matches=its)
                if place not in found.others:
                    text.parts[i] = part._replace(
                        tries=[], matches=its, known=known(part.source, its[0])
                    )
                elif its:
                    for form, sentence in part.tries:
                        self.guides[sentence] = self._guide(form, part.guide._replace(similar=its))

    def _guide(self, form: Masked, guide: Guide) -> Guide:
        """The guide for a masked form of a text, with the placeholder tokens that the form would have."""
        if not self._uses_tokens:
            return guide
        if guide.is_typed:
            for word in form.words:
                token = form.text[word.begin : word.end]
                prefix = guide.prefix.replace(word.opening, token)
                suffix = guide.suffix.replace(word.opening, token)
                guide = guide._replace(prefix=prefix, suffix=suffix)
        if not guide.similar:
            return guide
        has_tokens = ANY_TOKEN.search(form.text)
        similar = []
        for unit in guide.similar:
            pair = with_shared_tokens(unit.source, unit.target)
            if pair and (has_tokens or not ANY_TOKEN.search(pair[1])):
                similar.append(unit._replace(source=pair[0], target=pair[1]))
        return guide._replace(similar=tuple(similar))

    def _part(
        self, masked: Masked, spell: Callable[[str], str], in_parts: bool, guide: Guide
    ) -> _Part:
        source = original(masked, spell)
        # Each branch of a message would need its own translation.
        has_branches = any(WITH_BRANCHES.match(mark.opening) for mark in masked.words)
        branched = (LOST,) if has_branches else ()
        if not is_text(masked) and not guide.is_typed:
            words = (mark.opening for mark in masked.words if any(map(str.isalpha, mark.opening)))
            is_foreign = self._symbols and any(map(self._symbols.fullmatch, words))
            return _Part(source, guide, [], (UNTRANSLATED,) if is_foreign else branched)
        forms = [masked]
        if masked.words:
            # The translation of the raw text surely has the given characters.
            last = Masked(source, ()) if guide.is_typed else without_words(masked, spell)
            forms = [self._with_tokens(masked), last]
        # A form may be too long, since placeholders and characters can't be cut.
        if len(forms) > 1 or in_parts:
            forms = [form for form in forms if not self._too_long([form.text])]
        first = len(self.sentences)
        self.sentences += [form.text for form in forms]
        self.guides += [self._guide(form, guide) for form in forms]
        flags: tuple[str, ...] = (LONG,) if not forms else (IN_PARTS,) if in_parts else branched
        tries = list(zip(forms, range(first, first + len(forms)), strict=True))
        return _Part(source, guide, tries, flags)

    def _assembled(self, text: _Text, translations: Sequence[Translation]) -> Translation:
        """Join the translated parts of a text into a translation with alternatives."""
        best = self._ranked(text, translations, 0)
        used = [translations[place] for part in text.parts for _, place in part.tries]
        count = min(
            max((len(each.alternatives) for each in used), default=0), self.options.n_best - 1
        )
        by_text = {best.text: best}
        for rank in range(1, count + 1):
            other = self._ranked(text, translations, rank)
            by_text.setdefault(other.text, other)
        return replace(best, alternatives=tuple(by_text.values())[1:])

    def _ranked(self, text: _Text, translations: Sequence[Translation], rank: int) -> Translation:
        """Join the hypotheses of rank `rank` of a text's parts. Rank 0 is the best."""
        parts = [self._translated(part, text, translations, rank) for part in text.parts]
        gaps = target_gaps(
            text.gaps, [part.source for part in text.parts], [part.text for part in parts]
        )
        if text.guide.prefix:
            gaps[0] = ""
        if text.guide.suffix:
            gaps[-1] = ""
        written = "".join(chain(*zip(gaps, [*(part.text for part in parts), ""], strict=True)))
        flags = dict.fromkeys(flag for part in parts for flag in part.flags)
        if not self._is_intact(text, text.source, written):
            flags[LOST] = None
        scores = [
            translated.score
            for part, translated in zip(text.parts, parts, strict=True)
            if part.tries
        ]
        tokens = tuple(token for part in parts for token in part.tokens)
        score = sum(scores) / max(1, len(scores))
        confidence = min(
            (part.confidence for part in parts if part.confidence is not None), default=None
        )
        links = tuple(_links(text, parts, gaps))
        matches = tuple(match for part in text.parts for match in part.matches)
        terms = tuple(term for part in parts for term in part.terms)
        return Translation(
            written,
            score,
            tokens,
            flags=tuple(flags),
            links=links,
            confidence=confidence,
            matches=matches,
            terms=terms,
        )

    def _translated(
        self, part: _Part, text: _Text, translations: Sequence[Translation], rank: int
    ) -> Translation:
        """Return a part's first translation with all tags and placeholders, or else its last translation."""
        if part.known:
            return part.known
        # The last try has no placeholders to lose. The last try only fails if it was too long, or if its translation is
        # empty.
        result = Translation(
            part.source, 0.0, (), flags=(*part.flags, LONG) if part.tries else part.flags
        )
        for empty in (
            translations[place] for _, place in part.tries if not translations[place].text.strip()
        ):
            flags = tuple(dict.fromkeys((*part.flags, *empty.flags, EMPTY)))
            result = replace(empty, text=part.source, tokens=(), links=(), flags=flags)
        for masked, place in part.tries:
            others = [other for other in translations[place].alternatives if other.text.strip()]
            candidates = [translations[place], *others]
            if rank or not masked.marks:
                candidates = [candidates[min(rank, len(candidates) - 1)]]
            first = None
            for candidate in candidates:
                if candidate.text.strip() and copied(masked, candidate.text):
                    restored = self._restored(part, text, masked, candidate)
                    if masked.marks and not part.guide.fits(restored.text):
                        continue
                    if LOST not in restored.flags:
                        return restored
                    first = first or restored
            result = first or result
        return result

    def _is_intact(self, text: _Text, source: str, translation: str) -> bool:
        return intact(source, translation, text.kind, self._symbols)

    @cached_property
    def _glossary(self) -> TermFinder:
        finder: TermFinder = option("glossary")(self.options.glossary, self._language)
        return finder

    def _terms(self, masked: Masked) -> list[str]:
        """The target terms of the glossary for a text with marks, as they are and in capitals."""
        found = (
            self._glossary.matches(masked.text) if masked.marks and self.options.glossary else ()
        )
        return [form for term in found for form in (term.target, term.target.upper())]

    def _restored(
        self, part: _Part, text: _Text, masked: Masked, translation: Translation
    ) -> Translation:
        """Restore the tags and placeholders of `part` in `translation`."""
        made_up = stray_tokens(masked.text, translation.text) if self._uses_tokens else []
        restored = restore(
            masked, translation.text, translation.links, text.spell, made_up, self._terms(masked)
        )
        # Without placeholders, nothing can be lost; what is too much is found in the whole text.
        is_lost = masked.words and not self._is_intact(text, part.source, restored.text)
        flags = {
            LOST: made_up or is_lost,
            GUESSED: restored.guessed,
            TERM: any(mark.opening in self._changed for mark in masked.marks),
            OTHER_NUMBERS: not same_numbers(masked.text, translation.text),
        }
        links: list[Link] = []
        is_wanted = self.options.align and text.kind != MARKUP_TEXT
        # Otherwise, the source spans are unknown.
        if is_wanted and original(masked, text.spell) == part.source:
            patches = in_place(masked)
            for link in translation.links:
                source = moved(masked.text, patches, link.source, text.spell)
                links.append(Link(source, restored.moved(link.target), link.weight))
        return replace(
            translation,
            text=restored.text,
            flags=(
                *part.flags,
                *translation.flags,
                *(flag for flag, is_true in flags.items() if is_true),
            ),
            links=tuple(links),
        )


def _links(text: _Text, translated: Sequence[Translation], gaps: Sequence[str]) -> Iterator[Link]:
    """Yield the links of all parts, with offsets in the whole texts."""
    in_source = in_target = 0
    for before, gap, part, translation in zip(
        text.gaps, gaps, text.parts, translated, strict=False
    ):
        in_source += len(before)
        in_target += len(gap)
        for (begin, end), (first, last), weight in translation.links:
            yield Link(
                (in_source + begin, in_source + end), (in_target + first, in_target + last), weight
            )
        in_source += len(part.source)
        in_target += len(translation.text)

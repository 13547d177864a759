"""Texts of many sentences, and whole files: taken apart, translated sentence by sentence, and put together again.

A `Plan` knows which sentences there are and makes texts of their translations. Who translates them, and with what else
in one batch, is not its business: `translate_texts` does it at once, a server together with what others ask for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, islice, repeat
from typing import NamedTuple

from transduce.decoding.alignment import Link
from transduce.decoding.glossary import Term
from transduce.decoding.translator import CHUNK, Scored, Translation, Translator
from transduce.text.formats import read_document
from transduce.text.inline import TextKind
from transduce.text.markup import speller
from transduce.text.placeholder_tokens import both, stand_in, strays
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
    same_numbers,
    whole_words,
    without_words,
)
from transduce.text.placing import copied, restore
from transduce.text.segments import Segments, join, shorten, split, whole

# Flags of what needs a look, beside those that a sentence has.
LOST = "placeholders"  # not everything that isn't text is in the translation exactly once
GUESSED = "guessed"  # nothing says where a tag or a placeholder belongs
NUMBERS = "numbers"  # the numbers aren't those of the source
SPLIT = "split"  # a sentence was too long, and was translated in parts
LONG = "long"  # something was too long all the same, and wasn't translated

Lengths = Callable[[Sequence[str]], Sequence[int]]  # of texts, in tokens
Span = tuple[int, int]


class Flagged(NamedTuple):
    """A text of a file that needs a look."""

    line: int
    flags: tuple[str, ...]


class Translated(NamedTuple):
    """A translated file."""

    content: bytes
    texts: int  # translated
    flagged: list[Flagged]


class _Part(NamedTuple):
    """A sentence, or a part of one that is too long."""

    source: str  # as it stood
    tries: list[tuple[Masked, int]]  # what to translate, best first, with its number among the sentences; none: a copy
    flags: tuple[str, ...]


class _Text(NamedTuple):
    """A text: its parts and what is between them."""

    source: str
    kind: TextKind
    spell: Callable[[str], str]  # how what isn't markup is written
    gaps: list[str]
    parts: list[_Part]


class Plan:
    """Texts in a language, as sentences to translate: in any way that gives a Translation for each, in order.

    language: None where each text is one sentence. kinds: of the texts, plain unless given. A sentence of more than
    `longest`, as `lengths` measures it, is translated in parts. A sentence with placeholders is there twice, with and
    without them: the first counts if they are copied. stand_ins: whether the model knows placeholders as such (see
    Tokenizer.has_stand_ins).
    """

    def __init__(
        self,
        texts: Sequence[str],
        language: str | None,
        *,
        kinds: Sequence[TextKind] | None = None,
        lengths: Lengths | None = None,
        longest: int | None = None,
        stand_ins: bool = False,
    ) -> None:
        self.sentences: list[str] = []
        self._shown = stand_in if stand_ins else lambda masked: masked
        kinds = kinds or ["plain"] * len(texts)
        masked = [
            self._shown(mask(text, markup=kind != "plain", preserve=kind == "preserved"))
            for text, kind in zip(texts, kinds, strict=True)
        ]
        spans = [_spans(split(each.text, language) if language else whole(each.text)) for each in masked]
        parts = [[[span] for span in places] for places in spans]
        if lengths and longest:
            parts = _in_parts(masked, spans, lengths, longest)
        self._fits = (lambda text: lengths([text])[0] <= longest) if lengths and longest else (lambda _: True)
        self._texts = [
            self._text(text, kind, speller(text) if kind != "plain" else str, each, within)
            for text, kind, each, within in zip(texts, kinds, masked, parts, strict=True)
        ]

    def ways(self, n_best: int, beam_size: int, *, align: bool) -> dict[tuple[int, bool], list[int]]:
        """How many hypotheses are needed of which sentences, given by their places, and whether with links.

        Where something must be kept, one of the beam may have it; tags find their places by links. Both take time.
        """
        tries = (masked for text in self._texts for part in text.parts for masked, _ in part.tries)
        found: dict[tuple[int, bool], list[int]] = {}
        for place, (_, marks) in enumerate(tries):
            count = max(n_best, beam_size) if marks else n_best
            found.setdefault((count, align or any(mark.kind != "word" for mark in marks)), []).append(place)
        return found

    def places(self) -> list[int]:
        """Of each sentence the place of its text."""
        return [place for place, text in enumerate(self._texts) for part in text.parts for _ in part.tries]

    def assemble(self, translations: Sequence[Translation], n_best: int | None = None) -> list[Translation]:
        """The translations of the texts, from those of `sentences`; raises ValueError if they are more or fewer.

        A sentence whose best translation lacks a placeholder has the first of its alternatives that has them all. A
        score is the mean of the sentences' scores; tokens are theirs, one after the other. A text has as many
        alternatives as the sentence that has most, at most n_best - 1, less those that are the same in the end: the
        n-th is made of the n-th of each, or of its last. Links are those of the sentences, as places in the texts;
        markup whose blanks don't count has none.
        """
        if len(translations) != len(self.sentences):
            raise ValueError(f"{len(translations)} translations of {len(self.sentences)} sentences")
        return [_assembled(text, translations, n_best) for text in self._texts]

    def _text(
        self, text: str, kind: TextKind, spell: Callable[[str], str], masked: Masked, parts: list[list[Span]]
    ) -> _Text:
        """Take a text apart, and put its sentences to the others."""
        in_parts = {begin for spans in parts if len(spans) > 1 for begin, _ in spans}
        spans = whole_words(masked, [span for spans in parts for span in spans])
        gaps, sentences = cut(masked, spans, spell)
        return _Text(
            text,
            kind,
            spell,
            gaps,
            [self._part(each, spell, begin in in_parts) for each, (begin, _) in zip(sentences, spans, strict=True)],
        )

    def _part(self, masked: Masked, spell: Callable[[str], str], in_parts: bool) -> _Part:
        source = original(masked, spell)
        if not is_text(masked):
            return _Part(source, [], ())
        ways = [self._shown(masked), without_words(masked)] if has_words(masked) else [masked]
        if len(ways) > 1 or in_parts:  # a word with a mark isn't cut up, and a character can't be
            ways = [way for way in ways if self._fits(way.text)]
        first = len(self.sentences)
        self.sentences += [way.text for way in ways]
        flags = ((SPLIT,) * in_parts) if ways else (LONG,)
        return _Part(source, list(zip(ways, range(first, first + len(ways)), strict=True)), flags)


def translate_texts(
    translator: Translator,
    texts: Sequence[str],
    language: str | None,
    *,
    kinds: Sequence[TextKind] | None = None,
    n_best: int = 1,
    align: bool = False,
    glossary: Sequence[Term] = (),
    longest: int | None = None,
    numbers: Sequence[int] | None = None,
) -> list[Translation]:
    """The translations of texts of any number of sentences and paragraphs, in a language given by its code.

    language: None where each text is one sentence. align: say which words come from which (`Translation.links`).
    glossary, and numbers of the texts: as for `Translator.translate`. longest: the tokens of the longest sentence to
    translate as a whole, such as those that the model was trained on; its positions are a limit anyway.
    """
    positions = translator.engine.max_positions
    limits = [limit for limit in (longest, positions and positions - 1) if limit]

    def lengths(sentences: Sequence[str]) -> list[int]:
        return list(map(len, translator.tokenizer.encode_source(sentences)))

    plan = Plan(
        texts,
        language,
        kinds=kinds,
        lengths=lengths,
        longest=min(limits, default=None),
        stand_ins=translator.tokenizer.has_stand_ins,
    )
    numbers = [(numbers or range(1, len(texts) + 1))[place] for place in plan.places()]
    found: dict[int, Translation] = {}
    for (wanted, linked), places in plan.ways(n_best, translator.config.beam_size, align=align).items():
        sentences, theirs = [plan.sentences[place] for place in places], [numbers[place] for place in places]
        translations = translator.translate(sentences, n_best=wanted, align=linked, glossary=glossary, numbers=theirs)
        found |= zip(places, translations, strict=True)
    made = plan.assemble([found[place] for place in range(len(plan.sentences))], n_best)
    return made if align else list(map(_without_links, made))


def score_texts(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
    """How probable each target is as the translation of its source, one sentence each: as `Translator.score`.

    A model that knows placeholders by stand-ins is asked about these, where both sides have the same.
    """
    if translator.tokenizer.has_stand_ins and len(sources) == len(targets):
        shown = [both(*pair) or pair for pair in zip(sources, targets, strict=True)]
        sources, targets = [source for source, _ in shown], [target for _, target in shown]
    return translator.score(sources, targets)


def _without_links(made: Translation) -> Translation:
    """They were needed to put things back, but not asked for."""
    return replace(made, links=(), alternatives=tuple(map(_without_links, made.alternatives)))


def translate_paragraphs(
    translator: Translator,
    lines: Iterable[str],
    language: str | None,
    *,
    kinds: Iterable[TextKind] = repeat("plain"),
    n_best: int = 1,
    align: bool = False,
    glossary: Sequence[Term] = (),
    longest: int | None = None,
    numbers: Iterable[int] | None = None,
) -> Iterator[Translation]:
    """The same for a stream of lines of any length, each a text, some thousand at a time."""
    stream = zip(lines, kinds, numbers or count(1), strict=False)
    while chunk := list(islice(stream, CHUNK)):
        texts, theirs, called = zip(*chunk, strict=True)
        yield from translate_texts(
            translator,
            texts,
            language,
            kinds=theirs,
            n_best=n_best,
            align=align,
            glossary=glossary,
            longest=longest,
            numbers=called,
        )


def translate_document(
    translator: Translator,
    content: bytes,
    name: str,
    source: str,
    target: str,
    *,
    redo: bool = False,
    glossary: Sequence[Term] = (),
    longest: int | None = None,
) -> Translated:
    """A file with its texts translated, and what needs a look; the suffix of its name says what it is.

    redo: also what is translated already, in a file that holds both languages. Raises UserError for what can't be read.
    """
    document = read_document(content, name, source, target, redo=redo)
    made = translate_paragraphs(
        translator,
        document.texts,
        source,
        kinds=document.kinds,
        glossary=glossary,
        longest=longest,
        numbers=document.lines,
    )
    texts, flagged = list[str](), list[Flagged]()
    for line, each in zip(document.lines, made, strict=True):
        texts.append(each.text)
        if each.flags:
            flagged.append(Flagged(line, each.flags))
    return Translated(document.write(texts), len(texts), flagged)


def _spans(segments: Segments, begin: int = 0) -> list[Span]:
    """Where the sentences of a text, which begins there, begin and end."""
    spans = list[Span]()
    for separator, sentence in zip(segments.separators, segments.sentences, strict=False):
        begin += len(separator)
        spans.append((begin, begin + len(sentence)))
        begin += len(sentence)
    return spans


def _in_parts(
    masked: Sequence[Masked], spans: Sequence[Sequence[Span]], lengths: Lengths, longest: int
) -> list[list[list[Span]]]:
    """Each sentence of each text as the spans of its parts, one unless it is too long; all are measured at once."""
    sentences = [each.text[b:e] for each, places in zip(masked, spans, strict=True) for b, e in places]
    measured = iter(zip(sentences, lengths(sentences), strict=True))
    parts: list[list[list[Span]]] = []
    for places in spans:
        parts.append([])
        for span, (sentence, length) in zip(places, measured, strict=False):
            long = length > longest
            parts[-1].append(_spans(shorten(sentence, lengths, longest), span[0]) if long else [span])
    return parts


def _assembled(text: _Text, translations: Sequence[Translation], n_best: int | None) -> Translation:
    """A text of its sentences' translations, with alternatives."""
    best = _one(text, translations, 0)
    used = [translations[number] for part in text.parts for _, number in part.tries]
    count = max((len(each.alternatives) for each in used), default=0)
    count = count if n_best is None else min(count, n_best - 1)
    by_text = {best.text: best}
    for rank in range(1, count + 1):
        other = _one(text, translations, rank)
        by_text.setdefault(other.text, other)
    return replace(best, alternatives=tuple(by_text.values())[1:])


def _one(text: _Text, translations: Sequence[Translation], rank: int) -> Translation:
    """A text of the translations of a rank: 0 is the best of each sentence."""
    made = [_translated(part, text, translations, rank) for part in text.parts]
    written = join(text.gaps, [each.text for each in made])
    flags = dict.fromkeys(flag for each in made for flag in each.flags)
    if not intact(text.source, written, markup=text.kind != "plain"):
        flags[LOST] = None
    scores = [each.score for part, each in zip(text.parts, made, strict=True) if part.tries]
    return Translation(
        written,
        sum(scores) / max(1, len(scores)),
        tuple(token for each in made for token in each.tokens),
        (),
        tuple(flags),
        tuple(_links(text, made)),
    )


def _links(text: _Text, made: Sequence[Translation]) -> Iterator[Link]:
    """The links of the parts, as they are in the whole text."""
    read = written = 0
    for gap, part, each in zip(text.gaps, text.parts, made, strict=False):
        read, written = read + len(gap), written + len(gap)
        for (begin, end), (first, last), weight in each.links:
            yield Link((read + begin, read + end), (written + first, written + last), weight)
        read, written = read + len(part.source), written + len(each.text)


def _translated(part: _Part, text: _Text, translations: Sequence[Translation], rank: int) -> Translation:
    """A part with everything that isn't text: the first try in which all of it is kept, else the last."""
    # Something is kept in one of the tries, unless the one without words, which can't lack any, was too long.
    made = Translation(part.source, 0.0, (), (), (*part.flags, LONG) if part.tries else part.flags)
    for masked, number in part.tries:
        found = [translations[number], *translations[number].alternatives]
        whole = [each for each in found if copied(masked, each.text)]
        if rank or not masked.marks:
            whole = [each for each in [found[min(rank, len(found) - 1)]] if each in whole]
        restored = (_restored(part, text, masked, each) for each in whole)
        first = next(restored, made)
        made = next((each for each in chain((first,), restored) if LOST not in each.flags), first)
        if whole and LOST not in made.flags:
            break
    return made


def _restored(part: _Part, text: _Text, masked: Masked, chosen: Translation) -> Translation:
    """A part of the translation of what was masked of it."""
    made_up = strays(masked.text, chosen.text)
    restored = restore(masked, chosen.text, chosen.links, text.spell, without=made_up)
    flags = {
        LOST: bool(made_up) or not intact(part.source, restored.text, markup=text.kind != "plain"),
        GUESSED: restored.guessed,
        NUMBERS: not same_numbers(masked.text, chosen.text),
    }
    links: list[Link] = []
    if text.kind != "markup" and original(masked, text.spell) == part.source:  # or places in the source are unknown
        patches = in_place(masked)
        for link in chosen.links:
            source = moved(masked.text, patches, link.source, text.spell)
            links.append(Link(source, restored.moved(link.target), link.weight))
    return replace(
        chosen,
        text=restored.text,
        alternatives=(),
        flags=(*part.flags, *chosen.flags, *(flag for flag, holds in flags.items() if holds)),
        links=tuple(links),
    )

"""Prepares texts whose translations begin or end with given characters, and puts these characters into the results.

If a text and its prefix have several sentences, the complete sentences of the prefix translate the first sentences of
the text. Only the other sentences are translated, and the rest of the prefix begins the translation of the first of
them.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from transduce.decoding.types import Guide, Guides, Link, Translation, TranslationOptions
from transduce.inline.segments import split
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.tokens.normalization import composed

SENTENCE_ENDS = tuple(".!?…。！？।։።؟")
QUOTE_ENDS = "\"'”“’»)]"


class TypedText(NamedTuple):
    """A text, and the characters that were typed of its translation."""

    text: str
    guide: Guide
    number: int  # in messages
    done: int = 0  # characters of the text that the prefix translates completely
    head: int = 0  # characters of the prefix that translate them

    @property
    def searched(self) -> Guide:
        """What the search reads: composed characters, without blanks at the beginning, and with one at the end."""
        prefix = composed([self.guide.prefix[self.head :]])[0].lstrip()
        if prefix[-1:].isspace():
            prefix = f"{prefix.rstrip()} "
        suffix = composed([self.guide.suffix])[0] if self.guide.suffix.strip() else ""
        return self.guide._replace(prefix=prefix, suffix=suffix)

    def finished(self, translation: Translation) -> Translation:
        """The translation of the whole text. Raises UserError if it does not begin or end as it should."""
        if not self.guide.is_typed:
            return translation
        texts = (self._with_typed(each) for each in (translation, *translation.alternatives))
        fitting = [each for each in texts if self.guide.fits(each.text)]
        if not fitting:
            raise UserError(
                f"Text {self.number}: a passage can't be translated, so that the translation can't begin and end with "
                "the given characters.",
                "Leave out its prefix and its suffix.",
            )
        return replace(fitting[0], alternatives=tuple(fitting[1:]))

    def _with_typed(self, translation: Translation) -> Translation:
        searched = self.searched
        found = translation.text
        # An imported model's translations have no blank at the end.
        if not (searched.fits(found) or searched.fits(f"{found} ")):
            return translation
        begin = len(searched.prefix)
        end = max(begin, len(found) - len(searched.suffix))
        text = self.guide.prefix + found[begin:end] + self.guide.suffix
        place = self._places(begin)
        links = tuple(
            Link((first + self.done, last + self.done), (place(begins), place(ends)), weight)
            for (first, last), (begins, ends), weight in translation.links
        )
        return replace(translation, text=text, links=links, alternatives=())

    def _places(self, begin: int) -> Callable[[int], int]:
        """A function from places in a translation with `begin` searched characters to places in the final text."""
        typed = self.guide.prefix[self.head :]
        sizes = [len(composed([typed[:i]])[0].lstrip()) for i in range(len(typed) + 1)]
        added = len(self.guide.prefix) - begin
        return lambda place: (
            place + added if place >= begin else self.head + bisect_right(sizes, place) - 1
        )


class TypedTexts(NamedTuple):
    """Texts to translate, some of which have a prefix or a suffix."""

    typed: list[TypedText]

    @property
    def texts(self) -> list[str]:
        """What remains to be translated of each text."""
        return [each.text[each.done :] for each in self.typed]

    @property
    def guides(self) -> list[Guide]:
        """What the search reads for each of `texts`."""
        return [each.searched for each in self.typed]

    def finished(self, translations: Sequence[Translation]) -> list[Translation]:
        """The translations of the whole texts, from those of `texts`."""
        pairs = zip(self.typed, translations, strict=True)
        return [each.finished(translation) for each, translation in pairs]


def typed_texts(
    texts: Sequence[str],
    guides: Guides,
    numbers: Sequence[int],
    options: TranslationOptions,
    direction: Direction,
) -> TypedTexts:
    """Prepare texts for a search with prefixes and suffixes. Raises UserError for those that can't be used."""
    typed = []
    for text, guide, number in zip(texts, guides or (), numbers, strict=True):
        each = TypedText(text, guide, number)
        if guide.is_typed:
            _check(each, options)
            if options.sentences and not guide.suffix:
                done, head = translated_sentences(text, guide.prefix, direction)
                each = each._replace(done=done, head=head)
        typed.append(each)
    return TypedTexts(typed)


def _check(each: TypedText, options: TranslationOptions) -> None:
    """Raise UserError if no translation can begin and end as wanted."""
    characters = each.guide.prefix + each.guide.suffix
    where = f"Text {each.number}"
    if not each.text.strip():
        raise UserError(f"{where} is blank, but has a prefix or a suffix.", "Leave them out.")
    # Texts are split at all of these characters, so that no sentence holds them.
    if len(characters.splitlines()) > 1 or "\n" in characters:
        raise UserError(
            f"{where}: its prefix or its suffix has a line break.", "Translate each line by itself."
        )
    if characters.encode("utf-8", "replace").decode() != characters:
        raise UserError(f"{where}: its prefix or its suffix has half a surrogate pair.")
    if each.guide.suffix and options.glossary:
        raise UserError(f"{where}: a suffix can't be used with a glossary.", "Leave one out.")


def translated_sentences(text: str, prefix: str, direction: Direction) -> tuple[int, int]:
    """How many characters of a text are translated by complete sentences of the prefix, and how many these have."""
    sources = split(text, direction.source)
    targets = split(prefix, direction.target)
    last = prefix[: targets[-1][1]] if targets else ""
    is_ended = last != prefix and last.rstrip(QUOTE_ENDS).endswith(SENTENCE_ENDS)
    complete = min(len(targets) - (not is_ended), len(sources) - 1)
    if complete < 1:
        return 0, 0
    head = targets[complete][0] if complete < len(targets) else len(prefix)
    return sources[complete][0], head

"""Writes the translations of terms into encoded sources, for models with term marks (Dinu et al., 2019)."""

from collections.abc import Sequence

from transduce.tokens.spans import Span
from transduce.tokens.vocabulary import Vocabulary


def annotated(
    vocabulary: Vocabulary, text: str, ids: Sequence[int], terms: Sequence[tuple[Span, str]]
) -> list[int]:
    """The `ids` of `text` with TERM_MARKS and the translations of terms, in the order of their spans in `text`.

    Without the translations and marks, the ids are unchanged.
    """
    before, between, behind = vocabulary.term_marks
    spans = vocabulary.spans_in(text, ids)
    translations = vocabulary.encode([translation for _, translation in terms]).lists()
    row = list[int]()
    done = 0
    for ((begin, end), _), translation in zip(terms, translations, strict=True):
        # The pieces that end before the term, and those that begin before its end.
        first = max(done, sum(span[0] < begin and span[1] <= begin for span in spans))
        last = sum(span[0] < end for span in spans)
        row += [*ids[done:first], before, *ids[first:last], between, *translation, behind]
        done = last
    return [*row, *ids[done:]]

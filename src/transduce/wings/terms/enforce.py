"""A glossary enforced: sentences whose translations lack a term are searched again, with constraints."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from transduce.decoding.translator import Translator
from transduce.decoding.types import Hypothesis, NBestLists, Selector, Sentences, Term
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.terms.constraints import ConstraintSelector
from transduce.wings.terms.glossary import Constraint, Glossary, WordBoundaries, contains, segment, word_boundaries


class TermConstraints(NamedTuple):
    """What the translations of some sentences must contain (see `decoding.types.Constraints`)."""

    constraints: list[list[Constraint]]  # of each sentence
    boundaries: WordBoundaries

    @property
    def beams(self) -> list[int]:
        """One for each token of a sentence's terms, and one for what it has without them."""
        return [1 + sum(len(each.segmentations[0]) for each in sentence) for sentence in self.constraints]

    def select(self, sentences: Sequence[int]) -> Self:
        """Those of some sentences."""
        return self._replace(constraints=[self.constraints[i] for i in sentences])

    def selector(self, limits: Sequence[int], beam_size: int) -> Selector:
        """What enforces them in a search."""
        return ConstraintSelector(self.constraints, self.boundaries, limits, beam_size)


def enforce(
    translator: Translator, terms: Sequence[Term], sentences: Sentences, n_best_lists: NBestLists, n_best: int
) -> NBestLists:
    """The n_best_lists of a search without constraints where they contain the terms, elsewhere those of one with them.

    Raises UserError if the terms of a sentence are longer than its translation may be, and if no engine of the model
    supports constraints.
    """
    glossary, tokenizer = Glossary(terms), translator.tokenizer
    targets = {i: found for i, text in enumerate(sentences.texts) if (found := glossary.targets(text))}
    complete = {
        i: [each for each in n_best_lists[i] if _contains_all(tokenizer, each, wanted)] for i, wanted in targets.items()
    }
    lacking = [i for i in targets if len(complete[i]) < len(n_best_lists[i])]
    if not lacking:
        return n_best_lists
    constraints = [[segment(tokenizer, target) for target in targets[i]] for i in lacking]
    for i, each in zip(lacking, constraints, strict=True):
        if sum(len(term.segmentations[0]) for term in each) > translator.limit(sentences.sources[i]):
            raise UserError(
                f"Text {sentences.numbers[i]}: the terms of the glossary ({', '.join(targets[i])}) are longer than its "
                "translation may be; give shorter terms, or raise decode.max_extra_tokens."
            )
    engine = translator.engine_for("constraints")
    enforced = translator.search(
        engine, sentences.select(lacking), n_best, TermConstraints(constraints, word_boundaries(tokenizer))
    )
    merged = {i: _merged(complete[i], each, n_best) for i, each in zip(lacking, enforced, strict=True)}
    return [merged.get(i, each) for i, each in enumerate(n_best_lists)]


def _contains_all(tokenizer: Tokenizer, hypothesis: Hypothesis, targets: Sequence[str]) -> bool:
    [text] = tokenizer.decode([hypothesis.tokens])
    return all(contains(text, target) for target in targets)


def _merged(some: Sequence[Hypothesis], others: Sequence[Hypothesis], n_best: int) -> list[Hypothesis]:
    """The best of both, equal ones once."""
    by_tokens = {tuple(each.tokens): each for each in (*others, *some)}
    return sorted(by_tokens.values(), key=lambda each: -each.score)[:n_best]

"""Translates a sentence again with constrained search if its translation lacks a glossary term."""

from collections.abc import Sequence

from transduce.decoding.translator import Translator
from transduce.decoding.types import Constraints, Hypothesis, NBestLists, Sentences, Term
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.terms.constraints import ConstraintSelector
from transduce.wings.terms.glossary import Glossary, contains, segment, word_boundaries


def enforce(
    translator: Translator, terms: Sequence[Term], sentences: Sentences, n_best_lists: NBestLists, n_best: int
) -> NBestLists:
    """Replace hypotheses that lack a required term with results of a constrained search; returns the n-best lists.

    Raises UserError if a translation's token limit is too low for its terms, or if no engine supports this search.
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
    # One beam for each token of a sentence's terms, and one for hypotheses that contain all terms.
    beams = [1 + sum(len(term.segmentations[0]) for term in each) for each in constraints]
    for i, beam in zip(lacking, beams, strict=True):
        if beam - 1 > translator.limit(sentences.sources[i]):
            raise UserError(
                f"Text {sentences.numbers[i]}: the terms of the glossary ({', '.join(targets[i])}) exceed the token "
                "limit of the translation. Shorten the terms or raise decode.max_extra_tokens."
            )
    boundaries = word_boundaries(tokenizer)

    def selector(indices: Sequence[int], limits: Sequence[int], beam_size: int) -> ConstraintSelector:
        return ConstraintSelector([constraints[i] for i in indices], boundaries, limits, beam_size)

    engine = translator.engine_for("constraints")
    enforced = translator.search(engine, sentences.select(lacking), n_best, Constraints(beams, selector))
    merged = {i: _merged(complete[i], each, n_best) for i, each in zip(lacking, enforced, strict=True)}
    return [merged.get(i, each) for i, each in enumerate(n_best_lists)]


def _contains_all(tokenizer: Tokenizer, hypothesis: Hypothesis, targets: Sequence[str]) -> bool:
    [text] = tokenizer.decode([hypothesis.tokens])
    return all(contains(text, target) for target in targets)


def _merged(some: Sequence[Hypothesis], others: Sequence[Hypothesis], n_best: int) -> list[Hypothesis]:
    """The `n_best` best hypotheses of two lists, without duplicates."""
    by_tokens = {tuple(each.tokens): each for each in (*others, *some)}
    return sorted(by_tokens.values(), key=lambda each: -each.score)[:n_best]

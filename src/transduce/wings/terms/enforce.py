"""Translates a sentence again with constrained search if its translation lacks a glossary term."""

from collections.abc import Mapping, Sequence

from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    Constraints,
    Engine,
    Hypothesis,
    Match,
    NBestLists,
    Sentences,
)
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.terms.constraints import MAX_HYPOTHESES, ConstraintSelector
from transduce.wings.terms.glossary import Constraint, contains, segment, word_boundaries
from transduce.wings.terms.placement import Rivals, Tokens, find_rivals, forbidden, is_added


def enforce(
    translator: Translator,
    matches: Mapping[int, Sequence[Match]],
    sentences: Sentences,
    n_best_lists: NBestLists,
    n_best: int,
) -> NBestLists:
    """Replace hypotheses that lack a required term with results of a constrained search.

    `matches` are the terms of the sentences that have terms. If a term was only added to the translation, a second
    search forbids the word that the term should replace. If this does not help, the free translation is kept.

    Raises UserError if a translation's token limit is too low for its terms, or if no engine supports this search.
    """
    tokenizer = translator.tokenizer
    targets = {i: list(dict.fromkeys(match.target for match in its)) for i, its in matches.items()}
    complete = {
        i: [each for each in n_best_lists[i] if _contains_all(tokenizer, each, wanted)]
        for i, wanted in targets.items()
    }
    lacking = [i for i in targets if len(complete[i]) < len(n_best_lists[i])]
    if not lacking:
        return n_best_lists
    constraints = {i: [segment(tokenizer, target) for target in targets[i]] for i in lacking}
    _check_limits(translator, sentences, constraints)
    engine = translator.engine_for("constraints")
    found = _search(translator, engine, sentences, constraints, {}, n_best)
    # Beside a long prefix, there may be no room for the terms.
    lacking = [i for i in lacking if complete[i] or found[i]]
    merged = {i: translator.by_risk(_merged(complete[i], found[i], n_best)) for i in lacking}
    changed = {i: n_best_lists[i][0] for i in lacking if n_best_lists[i][0] not in complete[i]}
    if changed and "attention" in engine.supports:
        added = _added(translator, engine, sentences, matches, changed, merged)
        again = _without_rivals(translator, engine, sentences, matches, constraints, added, n_best)
        merged |= {i: again.get(i, n_best_lists[i]) for i in added}
    return [merged.get(i, each) for i, each in enumerate(n_best_lists)]


def _check_limits(
    translator: Translator, sentences: Sentences, constraints: Mapping[int, Sequence[Constraint]]
) -> None:
    """Raise UserError if the terms of a sentence have more tokens than its translation may have."""
    for i, terms in constraints.items():
        tokens = sum(len(term.segmentations[0]) for term in terms)
        if tokens > translator.limit(sentences.sources[i]):
            may_grow = translator.max_tokens is None or tokens <= translator.max_tokens
            raise UserError(
                f"Text {sentences.numbers[i]}: the terms of the glossary ({', '.join(term.text for term in terms)}) "
                "exceed the token limit of the translation.",
                f"Shorten the terms{' or raise decode.max_extra_tokens' if may_grow else ''}.",
            )


def _added(
    translator: Translator,
    engine: Engine,
    sentences: Sentences,
    matches: Mapping[int, Sequence[Match]],
    free: Mapping[int, Hypothesis],
    found: Mapping[int, Sequence[Hypothesis]],
) -> dict[int, Rivals]:
    """The sentences with a term that was only added to the free translation, and the rivals of their terms."""
    added = {}
    for i, rivals in find_rivals(translator, engine, sentences, free, matches).items():
        text, other = translator.tokenizer.decode([found[i][0].tokens, free[i].tokens])
        if any(
            is_added(text, other, match.target, rivals.get(match.target)) for match in matches[i]
        ):
            added[i] = rivals
    return added


def _without_rivals(
    translator: Translator,
    engine: Engine,
    sentences: Sentences,
    matches: Mapping[int, Sequence[Match]],
    constraints: Mapping[int, Sequence[Constraint]],
    added: Mapping[int, Rivals],
    n_best: int,
) -> dict[int, list[Hypothesis]]:
    """The results of a search that forbids the rivals in `added`, for the sentences that it frees from rivals."""
    tokenizer = translator.tokenizer
    banned = {i: forbidden(tokenizer, rivals, constraints[i]) for i, rivals in added.items()}
    wanted = {i: constraints[i] for i, tokens in banned.items() if tokens}
    found = _search(translator, engine, sentences, wanted, banned, n_best)
    best = {i: hypotheses[0] for i, hypotheses in found.items() if hypotheses}
    left = find_rivals(translator, engine, sentences, best, matches)
    return {i: found[i] for i in best if not left[i]}


def _search(
    translator: Translator,
    engine: Engine,
    sentences: Sentences,
    constraints: Mapping[int, Sequence[Constraint]],
    banned: Mapping[int, Sequence[Tokens]],
    n_best: int,
) -> dict[int, list[Hypothesis]]:
    """Search the sentences that have constraints, with these and without the banned token sequences."""
    boundaries = word_boundaries(translator.tokenizer.target)
    chosen = list(constraints)
    # One beam for each token of a sentence's terms, and one for hypotheses that contain all terms.
    most = max(1, MAX_HYPOTHESES // translator.config.beam_size)
    beams = [
        min(most, 1 + sum(len(term.segmentations[0]) for term in each))
        for each in constraints.values()
    ]

    def selector(
        indices: Sequence[int], limits: Sequence[int], beam_size: int
    ) -> ConstraintSelector:
        places = [chosen[i] for i in indices]
        wanted = [constraints[i] for i in places]
        unwanted = [banned.get(i, ()) for i in places]
        return ConstraintSelector(wanted, boundaries, limits, beam_size, unwanted)

    found = translator.search(
        engine, sentences.select(chosen), n_best, Constraints(beams, selector)
    )
    return dict(zip(chosen, found, strict=True))


def _contains_all(tokenizer: Tokenizer, hypothesis: Hypothesis, targets: Sequence[str]) -> bool:
    [text] = tokenizer.decode([hypothesis.tokens])
    return all(contains(text, target) for target in targets)


def _merged(
    some: Sequence[Hypothesis], others: Sequence[Hypothesis], n_best: int
) -> list[Hypothesis]:
    """The `n_best` best hypotheses of two lists, without duplicates."""
    by_tokens = {tuple(each.tokens): each for each in (*others, *some)}
    return sorted(by_tokens.values(), key=lambda each: -each.score)[:n_best]

"""The search of sentences with a glossary: a model that reads terms inflects them, any other is constrained."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    TERM,
    Guide,
    Hypothesis,
    Match,
    NBestLists,
    Sentences,
    Translation,
    TranslationOptions,
    UsedTerm,
)
from transduce.wings.terms.enforce import enforce
from transduce.wings.terms.glossary import Glossary, contains, open_glossary, spans_of
from transduce.wings.terms.lemmas import Lemmas

WIDER = 3  # times the beam size for sentences that lack a term


class TermSearch:
    """The terms of a glossary in sentences, the search for translations with these terms, and its check."""

    def __init__(
        self,
        translator: Translator,
        options: TranslationOptions,
        sentences: Sentences,
        originals: Sequence[str],
    ) -> None:
        """A term with capitals may match a sentence as the user wrote it (`originals`) or without unusual capitals.

        Raises UserError for a mistake in the glossary, and NotInstalledError without simplemma.
        """
        self._translator = translator
        inflects = bool(translator.tokenizer.source.term_marks) and not options.glossary_exact
        target = translator.direction.target if translator.direction else ""
        self._lemmas = Lemmas(target) if inflects else None
        glossary = open_glossary(options.glossary, translator.language, inflects)
        self._matches = _matches(glossary, sentences.texts, originals)
        self._texts = sentences.texts
        self.sentences = sentences
        if inflects and self._matches:
            guides = [
                guide._replace(terms=tuple(self._matches.get(i, ())))
                for i, guide in enumerate(sentences.guides or [Guide()] * len(sentences.texts))
            ]
            self.sentences = sentences._replace(guides=guides)

    def enforced(self, n_best_lists: NBestLists, n_best: int) -> NBestLists:
        """The results of a second search for sentences that lack a term.

        If the model inflects terms, this search has a wider beam, and hypotheses with more terms come first. If not, it
        is constrained.
        """
        if not self._lemmas:
            return enforce(self._translator, self._matches, self.sentences, n_best_lists, n_best)
        lacking = [i for i in self._matches if self._missed(i, n_best_lists[i][0])]
        if not lacking:
            return n_best_lists
        silent = replace(self._translator, progress=None)
        wider = silent.with_beam_size(WIDER * silent.config.beam_size)
        found = wider.search(wider.engine, self.sentences.select(lacking), wider.config.beam_size)
        lists = list(n_best_lists)
        for i, best in zip(lacking, found, strict=True):
            by_terms = sorted([*lists[i], *best], key=partial(self._missed, i))
            lists[i] = by_terms[:n_best]
        return lists

    def _missed(self, sentence: int, hypothesis: Hypothesis) -> int:
        """The number of terms of a sentence that a hypothesis lacks."""
        [text] = self._translator.tokenizer.decode([hypothesis.tokens])
        states = [_state(text, match.target, self._lemmas) for match in self._matches[sentence]]
        return states.count("missed")

    def checked(self, sentence: int, translation: Translation) -> Translation:
        """The translation of a sentence and its alternatives, with their terms, and with TERM if they lack one."""
        if sentence not in self._matches:
            return translation
        source = self._texts[sentence]
        terms = dict.fromkeys(
            UsedTerm(source[slice(*span)], target, _state(translation.text, target, self._lemmas))
            for span, target in self._matches[sentence]
        )
        flags = translation.flags
        if any(term.state == "missed" for term in terms):
            flags = (*flags, TERM)
        others = tuple(self.checked(sentence, other) for other in translation.alternatives)
        return replace(translation, terms=tuple(terms), flags=flags, alternatives=others)


def _matches(
    glossary: Glossary, texts: Sequence[str], originals: Sequence[str]
) -> dict[int, list[Match]]:
    """The terms of each sentence with terms, found in the original or the rewritten sentence."""
    matches = {}
    for i, forms in enumerate(zip(texts, originals, strict=True)):
        found = max(map(glossary.matches, dict.fromkeys(forms)), key=len)
        if found:
            matches[i] = found
    return matches


def _state(text: str, target: str, lemmas: Lemmas | None) -> Literal["kept", "inflected", "missed"]:
    """Whether a translation contains a term as it is written, in another form, or not."""
    if contains(text, target):
        return "kept"
    if lemmas:
        wanted = [target[slice(*span)] for span in spans_of(target)]
        words = [text[slice(*span)] for span in spans_of(text)]
        for place in range(len(words) - len(wanted) + 1):
            if all(map(lemmas.same, wanted, words[place : place + len(wanted)])):
                return "inflected"
    return "missed"

"""Sentences to trees: a translator whose search is kept to trees (section 6.3 of the paper)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from typing import NamedTuple

from transduce.config.schema import DecodeConfig
from transduce.decoding.engines.torch import TorchEngine
from transduce.decoding.loading import shared_tokenizer
from transduce.decoding.translator import Translator
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.text.tree_symbols import are_of_trees
from transduce.wings.parsing.brackets import BracketScores, agree_on_punctuation, score_brackets
from transduce.wings.parsing.evalb import Parameters
from transduce.wings.parsing.trees import (
    Tree,
    delinearise,
    linearise,
    marked_tags,
    marked_words,
    simplify,
    without_marks,
)
from transduce.wings.parsing.well_formed import WellFormed, kinds_of


class Parse(NamedTuple):
    """A sentence's tree."""

    tree: Tree | None  # None for a blank line
    changed: bool | None  # whether the free search found something else; None if it was not asked


class Parser:
    """A model, or an ensemble, that was trained on linearised trees."""

    def __init__(self, models: Sequence[Bundle], config: DecodeConfig):
        """Raises UserError for a model that was not trained on trees, or other vocabularies within an ensemble."""
        tokenizer = shared_tokenizer([model.tokenizer for model in models], [str(model.folder) for model in models])
        symbols = tokenizer.target_symbols()
        if not are_of_trees(symbols.values()):
            raise UserError(f"{models[0].folder} was not trained on trees, so that it translates, but does not parse.")
        networks = [model.model for model in models]
        free = TorchEngine(networks)
        self._free = Translator(free, tokenizer, config)
        pieces = tokenizer.target_pieces(range(tokenizer.target_size))
        self._kinds = kinds_of(pieces, list(symbols.values())).to(free.device)
        self._kept = Translator(TorchEngine(networks, token_filter=self._filter), tokenizer, config)

    def parse(self, sentences: Sequence[str], *, compare: bool = False) -> list[Parse]:
        """A tree over the words of every sentence, which blanks separate.

        compare: search without the filter, too, to say whether it changed anything. Raises UserError for a sentence
        that the model's positions are too few for.
        """
        found = list(self.parse_lines(sentences))
        if not compare:
            return found
        free = self._free.translate([marked_words(escaped_words(sentence)) for sentence in sentences])
        return [
            parse._replace(changed=marked_tags(linearise(parse.tree) if parse.tree else []) != other.text)
            for parse, other in zip(found, free, strict=True)
        ]

    def parse_lines(self, lines: Iterable[str]) -> Iterator[Parse]:
        """The same for a stream of any length, without comparing."""
        sentences, again = tee(map(escaped_words, lines))
        for words, found in zip(sentences, self._kept.translate_lines(map(marked_words, again)), strict=True):
            yield Parse(delinearise(without_marks(found.text), words) if words else None, None)

    def _filter(self, texts: list[str], limits: list[int]) -> WellFormed:
        sentences = [words_of(text)[1::2] for text in texts]
        for words, limit in zip(sentences, limits, strict=True):
            if limit < 2 * len(words) + 2:
                raise UserError(
                    f"There is no room for a tree of {len(words)} words within {limit} tokens; split it, "
                    f"or raise decode.max_extra_tokens: '{' '.join(words)[:60]}'."
                )
        return WellFormed(self._kinds, list(map(len, sentences)), limits)


class Measured(NamedTuple):
    """A parser's trees beside the gold ones."""

    parses: list[str]  # a line each
    scores: BracketScores  # as EVALB counts
    agreed: BracketScores  # with the gold trees' punctuation, so that no tree is left out
    changed: int  # parses that the free search had otherwise


def measure(parser: Parser, gold: Sequence[Tree], parameters: Parameters) -> Measured:
    """Parse the sentences of gold trees, with and without the filter, and compare."""
    sentences = [" ".join(simple.words()) if (simple := simplify(tree)) else "" for tree in gold]
    found = parser.parse(sentences, compare=True)
    parses = [str(each.tree or "") for each in found]
    agreed = [
        str(agree_on_punctuation(tree, each.tree, parameters) if each.tree else "")
        for tree, each in zip(gold, found, strict=True)
    ]
    return Measured(
        parses,
        score_brackets(map(str, gold), parses, parameters),
        score_brackets(map(str, gold), agreed, parameters),
        sum(bool(each.changed) for each in found),
    )


def words_of(sentence: str) -> list[str]:
    """The words, separated by ASCII blanks alone, as in treebanks."""
    return re.findall(r"[^ \t\r\f\v]+", sentence)


def escaped_words(sentence: str) -> list[str]:
    """The words as they can stand in a tree, round brackets as -LRB- and -RRB-; none of a line without a character."""
    return words_of(sentence.replace("(", "-LRB-").replace(")", "-RRB-")) if sentence.strip() else []

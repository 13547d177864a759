"""A parser that translates words to linearised trees with a constrained search."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from transduce.config.schema import DecodeConfig
from transduce.decoding.loading import shared_tokenizer
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import CHUNK_LINES, Translator
from transduce.decoding.types import PLAIN_SEARCH, Scored
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.text.pairs import Pair, chunks
from transduce.text.tree_symbols import are_of_trees
from transduce_lab.parsing.brackets import BracketScores, score_brackets, score_trees
from transduce_lab.parsing.evalb import Parameters
from transduce_lab.parsing.trees import (
    MalformedTreeError,
    Tree,
    delinearise,
    marked_words,
    simplify,
    without_marks,
)
from transduce_lab.parsing.well_formed import WellFormed, kinds_of


class Parser:
    """Parses sentences with a model, or an ensemble, trained on linearised trees."""

    def __init__(self, models: Sequence[Bundle], config: DecodeConfig):
        """Raises UserError if a model was not trained on trees, or if the models have different vocabularies."""
        tokenizer = shared_tokenizer(
            [model.tokenizer for model in models], [model.folder for model in models]
        )
        symbols = tokenizer.target_symbols()
        if not are_of_trees(symbols.values()):
            raise UserError(
                f"{models[0].folder} was not trained on trees.",
                "Use `transduce translate` for this model.",
            )
        networks = [model.model for model in models]
        config = replace(config, **PLAIN_SEARCH)  # trees repeat symbols
        engine = TorchEngine(networks)
        self._unconstrained = Translator(engine, tokenizer, config)
        pieces = tokenizer.target.all_pieces()
        self._kinds = kinds_of(pieces, list(symbols.values())).to(engine.device)
        self._constrained = Translator(
            TorchEngine(networks, token_filter=self._token_filter), tokenizer, config
        )

    def parse(self, lines: Iterable[str]) -> Iterator[Tree | None]:
        """Yield each line's tree, or None for a blank line; raises UserError if the token limit is too low."""
        stream = zip(map(escaped_words, lines), count(1), strict=False)
        for chunk in chunks(stream, CHUNK_LINES):
            sentences, numbers = zip(*chunk, strict=True)
            # translate_lines would split a sentence that is too long.
            found = self._constrained.translate_sentences(
                list(map(marked_words, sentences)), numbers=numbers
            )
            for words, translation in zip(sentences, found, strict=True):
                yield delinearise(without_marks(translation.text), words) if words else None

    def parse_gold(self, gold: Sequence[Tree]) -> Iterator[Tree | None]:
        """Parse the sentences of gold trees; None if a tree has no words."""
        return self.parse(" ".join(tree.words()) if tree else "" for tree in map(simplify, gold))

    def score(self, pairs: Sequence[Pair]) -> list[Scored]:
        """The probabilities of trees that were read as pairs (see `read_tree_pairs`)."""
        return self._unconstrained.score(
            [pair.source for pair in pairs], [pair.target for pair in pairs]
        )

    def unconstrained(self, sentences: Sequence[str]) -> list[str]:
        """Parse sentences without the constrained search; returns target texts that may be malformed trees."""
        sources = [marked_words(escaped_words(sentence)) for sentence in sentences]
        return [translation.text for translation in self._unconstrained.translate(sources)]

    def _token_filter(self, texts: list[str], limits: list[int]) -> WellFormed:
        sentences = [words_of(text)[1::2] for text in texts]
        for words, limit in zip(sentences, limits, strict=True):
            if limit < 2 * len(words) + 2:
                raise UserError(
                    f"A tree of {len(words)} words needs more than {limit} tokens: '{' '.join(words)[:60]}'.",
                    "Split the sentence or raise decode.max_extra_tokens.",
                )
        return WellFormed(self._kinds, list(map(len, sentences)), limits)


class Measured(NamedTuple):
    """The parses of the gold trees' sentences, and the scores of these parses."""

    parses: list[str]  # one line per sentence
    scores: BracketScores  # EVALB's scores of the parses
    agreed: BracketScores  # scores with the gold trees' punctuation tags, so that EVALB excludes no parse
    changed: int  # number of parses that the constrained search changed
    unconstrained: (
        BracketScores  # scores of the unconstrained search, with the gold trees' punctuation tags
    )


def measure(parser: Parser, gold: Sequence[Tree], parameters: Parameters) -> Measured:
    """Parse the gold trees' sentences, and score the parses."""
    simple = list(map(simplify, gold))
    sentences = [" ".join(tree.words()) if tree else "" for tree in simple]
    parses = list(parser.parse(sentences))
    texts = parser.unconstrained(sentences)
    lines = [str(parse or "") for parse in parses]
    free = [tree and _tree(text, tree.words()) for text, tree in zip(texts, simple, strict=True)]
    changed = sum(line != str(other or "") for line, other in zip(lines, free, strict=True))
    # A text that is not a tree counts as the gold tags without brackets, so that EVALB does not exclude it.
    trees = [
        found or (tree and Tree("", tuple(tree.leaves())))
        for found, tree in zip(free, simple, strict=True)
    ]
    return Measured(
        lines,
        score_brackets(map(str, gold), lines, parameters),
        score_trees(gold, parses, parameters),
        changed,
        score_trees(gold, trees, parameters),
    )


def _tree(target: str, words: Sequence[str]) -> Tree | None:
    """The tree of a target text, or None if the text is not a tree over the words."""
    try:
        return delinearise(without_marks(target), words)
    except MalformedTreeError:
        return None


def words_of(sentence: str) -> list[str]:
    """Split a sentence into words at ASCII white space only, as in treebanks."""
    return re.findall(r"[^ \t\r\f\v]+", sentence)


def escaped_words(sentence: str) -> list[str]:
    """Split a sentence into words, and write -LRB- and -RRB- for round brackets, as in treebanks."""
    return words_of(sentence.replace("(", "-LRB-").replace(")", "-RRB-"))

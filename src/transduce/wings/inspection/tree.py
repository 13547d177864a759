"""Builds the tree of all hypotheses that a beam search kept or pruned."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from transduce.config.schema import EOS, DecodeConfig
from transduce.decoding.beam import Expansion
from transduce.tokens.tokenizer import Tokenizer

Fate = Literal["kept", "complete", "pruned", "left"]  # left: incomplete when the search ended


@dataclass(frozen=True)
class Node:
    """A hypothesis extended by one token. The nodes of each search step are sorted by log-probability, best first."""

    piece: str
    token: int
    parent: int  # index of the parent node in the previous step; -1 in the first step
    log_prob: float  # log-probability of the hypothesis up to this token
    fate: Fate


@dataclass
class Complete:
    """A complete hypothesis."""

    text: str
    score: float  # log_prob divided by the length penalty
    log_prob: float
    length: int  # number of tokens, EOS counted; also the number of its last step, from 1
    place: int  # index of its last node in that step


@dataclass(frozen=True)
class SearchTree:
    """The continuations that the beam search considered for one sentence, and the settings of the search."""

    beam_size: int
    length_penalty: float
    steps: list[list[Node]]
    complete: list[Complete]  # best first

    def path(self, complete: Complete) -> list[int]:
        """The tokens of a complete hypothesis, without BOS and EOS."""
        tokens = []
        place = complete.place
        for step in reversed(self.steps[: complete.length]):
            tokens.append(step[place].token)
            place = step[place].parent
        return tokens[:0:-1]


def search_tree(
    expansions: Sequence[Expansion], tokenizer: Tokenizer, config: DecodeConfig, end: str
) -> SearchTree:
    """Build the tree from the steps of one sentence's beam search; `end` is the text shown for EOS."""
    steps = list(_steps(expansions, tokenizer, end))
    finished = list[Complete]()
    for step, expansion in enumerate(expansions):
        for place, score in enumerate(expansion.ended[0].tolist()):
            if score > -math.inf:
                log_prob = steps[step][place].log_prob
                finished.append(Complete("", score, log_prob, step + 1, place))
    # Stable: equal scores keep their order, as in the search.
    finished.sort(key=lambda complete: -complete.score)
    tree = SearchTree(config.beam_size, config.length_penalty, steps, finished)
    for complete in finished:
        [complete.text] = tokenizer.decode([tree.path(complete)])
    return tree


def _steps(expansions: Sequence[Expansion], tokenizer: Tokenizer, end: str) -> Iterator[list[Node]]:
    kept_before = [-1]
    for expansion in expansions:
        kept = expansion.kept[0].tolist()
        ended = expansion.ended[0].isfinite().tolist()
        log_probs = expansion.log_probs[0].tolist()
        tokens = expansion.tokens[0].tolist()
        parents = [kept_before[parent] for parent in expansion.parents[0].tolist()]
        pieces = [
            end if token == EOS else piece
            for token, piece in zip(tokens, tokenizer.target.pieces(tokens), strict=True)
        ]
        open_fate: Fate = "left" if expansion is expansions[-1] else "kept"
        fates: list[Fate] = [
            "complete"
            if place < len(ended) and ended[place]
            else open_fate
            if place in kept
            else "pruned"
            for place in range(len(tokens))
        ]
        nodes = map(Node, pieces, tokens, parents, log_probs, fates)
        # Drops impossible continuations, which come last.
        yield [node for node in nodes if node.log_prob > -math.inf]
        kept_before = kept

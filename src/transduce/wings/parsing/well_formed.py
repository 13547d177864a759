"""The filter that keeps linearised trees well-formed: a mark and a tag for each word, brackets that close, in time.

b = sentences, w = hypotheses of each, n = tokens so far, v = vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.config.schema import EOS
from transduce.text.tree_symbols import CLOSE, NUM_MARKS, OPEN, mark

OTHER, OPENS, CLOSES, TAGS, MARK = range(5)  # kinds of pieces; MARK + i is mark i


def kinds_of(pieces: Sequence[str], symbols: Sequence[str]) -> Tensor:
    """(v,) what each piece is in a tree; pieces that are none of the symbols are OTHER and never produced."""
    known, marks = set(symbols), {mark(place): MARK + place for place in range(NUM_MARKS)}

    def kind(piece: str) -> int:
        symbol = piece.removeprefix("\u2581")
        if symbol not in known:
            return OTHER
        return OPENS if symbol.startswith(OPEN) else CLOSES if symbol == CLOSE else marks.get(symbol, TAGS)

    return torch.tensor([kind(piece) for piece in pieces])


class WellFormed:
    """A filter for beam search (a TokenFilter): what it lets through ends as a tree over all the words.

    Each tag stands behind its word's mark, every bracket holds something, the root closes behind the last word, and
    nothing opens that there is no room to close. With any probabilities, a search with room for its words, their marks
    and two brackets finds a tree.
    """

    def __init__(self, kinds: Tensor, words: Sequence[int], limits: Sequence[int]):
        """kinds (v,), and of each sentence the words and the most tokens allowed, EOS not counted."""
        self.kinds, self.marks = kinds, int((kinds >= MARK).sum())
        self.words, self.limits = (torch.tensor(list(each), device=kinds.device) for each in (words, limits))
        if (self.limits < 2 * self.words + 2).any():
            raise ValueError("a sentence has no room for its words, their marks and a pair of brackets")

    def __call__(self, tokens: Tensor, log_probs: Tensor) -> None:
        """tokens (b, w, n), BOS first; overwrite log_probs (b, w, v) with -inf where no tree can come of it."""
        kinds = self.kinds[tokens]
        opened, closed, tagged = ((kinds == kind).sum(-1) for kind in (OPENS, CLOSES, TAGS))  # (b, w)
        depth, left = opened - closed, self.words[:, None] - tagged
        last = kinds[..., -1]
        room = self.limits[:, None] - (tokens.size(-1) - 1)
        complete = (depth == 0) & (opened > 0)
        allowed = torch.zeros(*depth.shape, MARK + self.marks, dtype=torch.bool, device=depth.device)
        allowed[..., OPENS] = ~complete & (left > 0) & (room >= 2 * left + depth + 2)  # itself and its end
        allowed[..., CLOSES] = (depth > 0) & (last != OPENS) & ((depth > 1) | (left == 0))
        allowed.scatter_(-1, MARK + tagged[..., None] % self.marks, ((depth > 0) & (left > 0))[..., None])
        allowed[last >= MARK] = torch.arange(MARK + self.marks, device=depth.device) == TAGS
        permitted = allowed[..., self.kinds]  # (b, w, v)
        permitted[..., EOS] = complete
        log_probs.masked_fill_(~permitted, -torch.inf)

    def select(self, sentences: Tensor) -> None:
        """Go on with these sentences only."""
        self.words, self.limits = self.words[sentences], self.limits[sentences]

"""The token filter that keeps linearised trees well-formed during search.

b = sentences, w = hypotheses of a sentence, n = tokens so far, v = vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.config.schema import EOS
from transduce.text.tree_symbols import CLOSE, NUM_MARKS, OPEN, mark
from transduce_lab.parsing.trees import CLOSING_SYMBOL

NOT_A_SYMBOL, OPENS, CLOSES, TAGS, MARK = range(5)  # kinds of pieces; MARK + i is mark i
CLOSES_TO = MARK + NUM_MARKS  # CLOSES_TO + i closes brackets until i are open


def kinds_of(pieces: Sequence[str], symbols: Sequence[str]) -> Tensor:
    """The kind (v,) of each piece, such as OPENS, or NOT_A_SYMBOL for a piece that is not a tree symbol."""
    known = set(symbols)
    marks = {mark(place): MARK + place for place in range(NUM_MARKS)}

    def kind(piece: str) -> int:
        symbol = piece.removeprefix("\u2581")
        if symbol not in known or (
            symbol.startswith(CLOSE) and not CLOSING_SYMBOL.fullmatch(symbol)
        ):
            return NOT_A_SYMBOL
        if symbol.startswith(CLOSE):
            return CLOSES if symbol == CLOSE else CLOSES_TO + int(symbol.removeprefix(CLOSE))
        return OPENS if symbol.startswith(OPEN) else marks.get(symbol, TAGS)

    return torch.tensor([kind(piece) for piece in pieces])


class WellFormed:
    """A TokenFilter that lets a search complete only trees over all words of a sentence.

    A token limit must be at least 2 * words + 2.
    """

    def __init__(self, kinds: Tensor, words: Sequence[int], limits: Sequence[int]):
        """`kinds` has shape (v,); `words` are the sentences' word counts; `limits` are the token limits without EOS."""
        self.kinds = kinds
        self.marks = int(((kinds >= MARK) & (kinds < CLOSES_TO)).sum())
        self.words, self.limits = (
            torch.tensor(list(each), device=kinds.device) for each in (words, limits)
        )

    def __call__(self, tokens: Tensor, log_probs: Tensor) -> None:
        """Set log_probs (b, w, v) to -inf for each next token after which `tokens` (b, w, n) can't become a tree."""
        kinds = self.kinds[tokens]
        depth = _num_open(kinds)
        last = kinds[..., -1]
        tagged = (kinds == TAGS).sum(-1)
        left = self.words[:, None] - tagged
        room = self.limits[:, None] - (tokens.size(-1) - 1)  # - 1: BOS does not count
        complete = (depth == 0) & (tagged > 0)
        closes, closes_to = self._may_close(depth, left, last)
        allowed = torch.zeros(
            *depth.shape, CLOSES_TO + closes_to.size(-1), dtype=torch.bool, device=depth.device
        )
        # + 2: its own brackets.
        allowed[..., OPENS] = ~complete & (left > 0) & (room >= 2 * left + depth + 2)
        allowed[..., CLOSES] = closes
        allowed[..., CLOSES_TO:] = closes_to
        allowed.scatter_(
            -1, MARK + tagged[..., None] % self.marks, ((depth > 0) & (left > 0))[..., None]
        )
        allowed[(last >= MARK) & (last < CLOSES_TO)] = (
            torch.arange(allowed.size(-1), device=depth.device) == TAGS
        )
        permitted = allowed[..., self.kinds]  # (b, w, v)
        permitted[..., EOS] = complete
        log_probs.masked_fill_(~permitted, -torch.inf)

    def _may_close(self, depth: Tensor, left: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """Whether one bracket may be closed (b, w), and for each i, whether all but i brackets may be closed (b, w, i).

        `depth` brackets are open, and `left` words are missing, each of shape (b, w). The outermost bracket may not be
        closed before all words are used.
        """
        remaining = torch.arange(max(0, int(self.kinds.max()) + 1 - CLOSES_TO), device=depth.device)
        may_close = (depth > 0) & (last != OPENS)
        can_remain = (remaining < depth[..., None]) & ((remaining > 0) | (left[..., None] == 0))
        return may_close & ((depth > 1) | (left == 0)), may_close[..., None] & can_remain

    def select(self, sentences: Tensor) -> None:
        """Keep only the sentences with these indices."""
        self.words = self.words[sentences]
        self.limits = self.limits[sentences]


def _num_open(kinds: Tensor) -> Tensor:
    """The number of open brackets (b, w) after tokens of these kinds (b, w, n)."""
    places = torch.arange(kinds.size(-1), device=kinds.device)
    # Last place with a known depth.
    known = torch.where(kinds >= CLOSES_TO, places, 0).amax(-1, keepdim=True)
    change = (kinds == OPENS).int() - (kinds == CLOSES).int()
    since = change.masked_fill(places <= known, 0).sum(-1)
    return (kinds.gather(-1, known)[..., 0] - CLOSES_TO).clamp(min=0) + since

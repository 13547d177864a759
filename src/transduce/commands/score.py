"""`transduce score`."""

import json as json_format
from pathlib import Path

from transduce.commands.options import Assignments
from transduce.config.parse import parse_assignments


def score(model: Path, source: str, target: str, /, *, json: bool = False, assignments: Assignments = ()) -> None:
    """Print the log-probability that a model gives to each given translation.

    One number a line, in nats, the end of the sentence included; a blank pair has 0.

    Args:
        model: A model folder.
        source: A text file, one sentence a line.
        target: Its translation, line by line.
        json: A JSON object per line: log_prob, num_tokens, and score, normalised as beam search does.
    """
    given = parse_assignments(assignments)
    from transduce.decoding.documents import score_texts
    from transduce.decoding.engines.support import ENCODER
    from transduce.decoding.loading import load  # torch: too slow for --help
    from transduce.text.pairs import read_pairs

    pairs = list(read_pairs([source, target]))
    exact = load(model, given, engine="auto" if (model / ENCODER).exists() else "torch")
    for each in score_texts(exact, [pair.source for pair in pairs], [pair.target for pair in pairs]):
        print(json_format.dumps(each._asdict()) if json else f"{each.log_prob:.4f}")

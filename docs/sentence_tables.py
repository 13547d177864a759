"""Tables of the sentence that the pages about the paper follow, from docs/paper/beside/sentence.json, as Markdown."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

SENTENCE: dict[str, Any] = json.loads(
    (Path(__file__).parent / "paper" / "beside" / "sentence.json").read_text(encoding="utf-8")
)
QUERY = 4  # the source token whose attention is shown: "bringing"
NUM_ROWS = 4  # tokens whose vectors are shown


def table(name: str) -> str:
    """The table with this name."""
    return TABLES[name]()


def tokens() -> str:
    """The pieces of the sentence and of its translation, with their ids."""
    source, target = SENTENCE["source"], SENTENCE["target"]
    ids = [*target["ids"], 2]
    rows = zip(source["pieces"], source["ids"], target["pieces"], ids, strict=True)
    return markdown(
        ("source", "id", "translation", "id"),
        ((one, str(a), other, str(b)) for one, a, other, b in rows),
    )


def vectors() -> str:
    """The first channels of some embeddings, positions and sums."""
    found = SENTENCE["vectors"]
    rows = [
        (
            SENTENCE["source"]["pieces"][n],
            *(listed(found[name][n]) for name in ("embedding", "position", "sum")),
        )
        for n in range(NUM_ROWS)
    ]
    return markdown(("token", "√d_model · E", "PE", "sum"), rows)


def norms() -> str:
    """Mean, standard deviation and the first channel of the tokens before and after a layer normalisation."""
    found = SENTENCE["vectors"]
    means, deviations = found["residual"]
    rows = [
        (
            SENTENCE["source"]["pieces"][n],
            number(means[n]),
            number(deviations[n]),
            number(found["before"][n][0]),
            number(found["normalised"][n][0]),
        )
        for n in range(NUM_ROWS)
    ]
    return markdown(("token", "mean μ", "deviation σ", "channel 1 before", "channel 1 after"), rows)


def heads() -> str:
    """The attention of one token in every head of the first encoder layer."""
    found = SENTENCE["heads"]
    columns = [found["scores"][0][QUERY], *(head[QUERY] for head in found["weights"])]
    names = ("key", "score of head 1", *(f"weight of head {n}" for n in range(1, len(columns))))
    rows = zip(SENTENCE["source"]["pieces"], *columns, strict=True)
    return markdown(
        names, ((piece, number(score, 2), *map(number, weights)) for piece, score, *weights in rows)
    )


def active() -> str:
    """How many inner channels of the first feed-forward layer are positive, for each token."""
    rows = zip(SENTENCE["source"]["pieces"], SENTENCE["vectors"]["active"], strict=True)
    return markdown(
        ("token", f"positive of {SENTENCE['model']['d_ff']} inner channels"),
        ((piece, str(count)) for piece, count in rows),
    )


def best() -> str:
    """The most probable tokens at each position of the reference translation."""
    rows = zip(SENTENCE["decoder_input"], SENTENCE["losses"]["best"], strict=True)
    return markdown(
        ("last token read", "most probable next tokens"),
        ((read, ", ".join(f"{token} {p:.4f}" for token, p in tokens)) for read, tokens in rows),
    )


def losses() -> str:
    """The probability and the losses of each token of the reference translation."""
    found = SENTENCE["losses"]
    rows = [
        (piece, f"{p:.4f}", number(-math.log(p)), number(smoothed))
        for piece, p, smoothed in zip(
            SENTENCE["target"]["pieces"], found["probability"], found["smoothed"], strict=True
        )
    ]
    total = -sum(math.log(p) for p in found["probability"])
    rows.append(("sum", "", number(total), number(sum(found["smoothed"]))))
    return markdown(("token", "probability p", "−ln p", "smoothed loss"), rows)


def beam() -> str:
    """The open hypotheses after each step of a beam of 4."""
    steps = SENTENCE["picture"]["search"]["steps"]
    rows = []
    for n, step in enumerate(steps, start=1):
        kept = [
            f"{path(steps, n - 1, place)} {number(node['log_prob'], 2)}"
            for place, node in enumerate(step)
            if node["fate"] == "kept"
        ]
        if kept:
            rows.append((str(n), *kept, *[""] * (4 - len(kept))))
    return markdown(("step", "1st", "2nd", "3rd", "4th"), rows)


def complete() -> str:
    """The complete hypotheses of a beam of 4."""
    rows = [
        (each["text"], number(each["log_prob"]), str(each["length"]), number(each["score"]))
        for each in SENTENCE["picture"]["search"]["complete"][:4]
    ]
    return markdown(("complete hypothesis", "log P", "tokens with ⏎", "score"), rows)


def path(steps: Sequence[Sequence[dict[str, Any]]], step: int, place: int, longest: int = 2) -> str:
    """The last pieces of a hypothesis."""
    pieces = []
    while step >= 0:
        node = steps[step][place]
        pieces.insert(0, node["piece"])
        place = node["parent"]
        step -= 1
    return ("… " if len(pieces) > longest else "") + " ".join(pieces[-longest:])


def listed(values: Iterable[float]) -> str:
    return f"({', '.join(map(number, values))}, …)"


def number(value: float, digits: int = 3) -> str:
    """A number with a minus sign."""
    return f"{value:.{digits}f}".replace("-", "−")


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


TABLES: dict[str, Callable[[], str]] = {
    each.__name__: each
    for each in (tokens, vectors, norms, heads, active, best, losses, beam, complete)
}

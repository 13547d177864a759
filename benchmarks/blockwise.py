"""Blockwise parallel decoding beside greedy search and beam search: BLEU, tokens per call of the decoder, and time.

    python benchmarks/blockwise.py MODEL [MODEL ...] --test test.tsv [--sentences 100] [--rounds 5]

Blockwise search is for MODELs trained with model.block_size above 1. All run on one thread. BLEU
is for the whole test text. Times are for its first sentences, one sentence per call as for a user who waits, from text
to text. All searches of all models take turns, round by round. The speed is relative to the first row, in the same
round: the median, the lowest and the highest.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import sacrebleu

import transduce
from transduce.decoding.registry import EngineName
from transduce.decoding.translator import Translator
from transduce.model_folder import read_config
from transduce.system.profiling import profiling
from transduce.text.pairs import read_pairs
from transduce_lab.options import BlockwiseOptions

SEARCHES: dict[str, tuple[EngineName, int]] = {  # name -> engine, beam size
    "greedy": ("torch", 1),
    "blockwise": ("blockwise", 1),
    "beam 4": ("torch", 4),
    "greedy, CTranslate2": ("ctranslate2", 1),
}


class Row(NamedTuple):
    """A model with a search."""

    model: str
    search: str
    translator: Translator
    seconds: list[float]  # of each round


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    pairs = list(read_pairs([str(arguments.test)], ("", "")))
    sources = [pair.source for pair in pairs]
    references = [pair.target for pair in pairs]
    rows = []
    for folder in arguments.models:
        for search, (engine, beam_size) in SEARCHES.items():
            if (
                search != "blockwise"
                or BlockwiseOptions.of(read_config(folder).model).block_size > 1
            ):
                options = {"decode.beam_size": beam_size, "decode.retry_loops": False}
                translator = transduce.load(folder, options, engine=engine, threads=1)
                rows.append(Row(folder.parent.name, search, translator, []))
    for number in range(arguments.rounds + 1):
        for row in rows:
            began = time.perf_counter()
            for source in sources[: arguments.sentences]:
                row.translator.translate([source])
            if number:  # the first round is a rehearsal
                row.seconds.append(time.perf_counter() - began)
    headings = (
        "model",
        "search",
        "BLEU",
        "same as greedy",
        "tokens per call",
        "ms per sentence",
        "speed",
    )
    print(f"| {' | '.join(headings)} |\n|{' --- |' * len(headings)}")
    greedy: list[str] = []
    for row in rows:
        with profiling(["search"]) as profile:
            found = [translation.text for translation in row.translator.translate(sources)]
        greedy = found if row.search == "greedy" else greedy
        same = sum(map(str.__eq__, found, greedy)) / len(found)
        calls = profile.counts.get("decoder calls", 0)
        per_call = f"{profile.counts['hypotheses'] / calls:.2f}" if calls else ""
        bleu = sacrebleu.corpus_bleu(found, [references]).score
        ratios = sorted(
            first / own for first, own in zip(rows[0].seconds, row.seconds, strict=True)
        )
        spread = f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"
        milliseconds = 1000 * statistics.median(row.seconds) / arguments.sentences
        print(
            f"| {row.model} | {row.search} | {bleu:.2f} | {same:.1%} | {per_call} | {milliseconds:.1f} | {spread} |"
        )


if __name__ == "__main__":
    main()

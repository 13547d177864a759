"""Text in, text out: sentences a second of our engines, beside the bare CTranslate2 and transformers.

    python benchmarks/decoding.py MODEL SOURCE REFERENCE [--threads 2] [--repeats 5] [--beam-size 4 1]

MODEL is a finished training of a Transformer. All begin with the same lines and end with text; loading and a first
batch come before. They take turns, `--repeats` times; medians, with the smallest and the largest of the ratios to the
bare engine. The bare engine, with SentencePiece around it, is used as its documentation says: int8, a worker a thread,
sorted batches of 32, its own rules for the end of a search; transformers has sorted batches of 64, and its own rules,
too. BLEU says that the work is the same.
"""

import argparse
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import sacrebleu
import torch
from transformers import MarianMTModel, MarianTokenizer
from transformers.utils import logging

import transduce
from transduce import bundle
from transduce.corpus.plain import read_lines
from transduce.decoding.engines.conversion import convert
from transduce.export import huggingface

Translate = Callable[[list[str]], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source")
    parser.add_argument("reference")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--beam-size", type=int, nargs="+", default=[4, 1])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    sources, references = list(read_lines(arguments.source)), list(read_lines(arguments.reference))
    print(f"{arguments.model}, {len(sources):,} sentences, {arguments.threads} threads, ctranslate2 "
          f"{ctranslate2.__version__}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}\n")  # fmt: skip
    print("| beam | engine | seconds | sentences/s | in those of the bare engine | BLEU |")
    print("| --- | --- | --- | --- | --- | --- |")
    for beam_size in arguments.beam_size:
        engines = {"bare CTranslate2, int8": bare(arguments.model, beam_size, arguments.threads)}
        engines["transformers"] = marian(arguments.model, beam_size)
        for name in ("ctranslate2", "int8", "torch"):
            options = {"decode.beam_size": beam_size}
            ours = transduce.load(arguments.model, options, engine=name, device="cpu", threads=arguments.threads)
            engines[f"transduce, {ours.engine.name}"] = lambda texts, ours=ours: [t.text for t in ours.translate(texts)]
        found = {name: translate(sources) for name, translate in engines.items()}
        seconds: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(arguments.repeats):
            for name, translate in engines.items():
                began = time.perf_counter()
                translate(sources)
                seconds[name].append(time.perf_counter() - began)
        first = next(iter(seconds.values()))
        for name, each in seconds.items():
            ratios = sorted(theirs / ours for ours, theirs in zip(each, first, strict=True))
            middle = statistics.median(each)
            bleu = sacrebleu.corpus_bleu(found[name], [references]).score
            ratio = f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"
            print(f"| {beam_size} | {name} | {middle:.2f} | {len(sources) / middle:.0f} | {ratio} | {bleu:.1f} |")


def bare(model: Path, beam_size: int, threads: int) -> Translate:
    """The engine as its own documentation says, with SentencePiece before and behind it."""
    loaded = bundle.load(model, threads=threads)
    folder = Path(tempfile.mkdtemp())
    convert(loaded.model, loaded.config.model, folder, "int8")
    engine = ctranslate2.Translator(str(folder), compute_type="int8", inter_threads=threads, intra_threads=1)

    def translate(texts: list[str]) -> list[str]:
        rows = [[*map(str, row), "2"] for row in loaded.tokenizer.encode_source(texts)]
        results = engine.translate_batch(
            rows, beam_size=beam_size, max_batch_size=32, length_penalty=loaded.config.decode.length_penalty
        )
        return loaded.tokenizer.decode([[int(token) for token in result.hypotheses[0]] for result in results])

    return translate


def marian(model: Path, beam_size: int) -> Translate:
    """transformers as the export's own instructions say, float32, all threads for one batch."""
    loaded, folder = bundle.load(model), Path(tempfile.mkdtemp())
    huggingface.write(loaded, folder, "float32")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with warnings.catch_warnings(action="ignore"):  # it would like sacremoses, which it doesn't use here
        tokenizer = MarianTokenizer.from_pretrained(str(folder), local_files_only=True)
    network = MarianMTModel.from_pretrained(str(folder), local_files_only=True).eval()
    alpha = loaded.config.decode.length_penalty

    @torch.inference_mode()
    def translate(texts: list[str]) -> list[str]:
        order, found = sorted(range(len(texts)), key=lambda place: -len(texts[place])), [""] * len(texts)
        for start in range(0, len(order), 64):
            places = order[start : start + 64]
            batch = tokenizer([texts[place] for place in places], return_tensors="pt", padding=True)
            rows = network.generate(**batch, num_beams=beam_size, length_penalty=alpha, max_new_tokens=256)
            for place, row in zip(places, rows, strict=True):
                found[place] = tokenizer.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return found

    return translate


if __name__ == "__main__":
    os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())
    main()

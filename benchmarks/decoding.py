"""Sentences a second, from text to text, of our engines, CTranslate2 without transduce ("bare"), and transformers.

    python benchmarks/decoding.py MODEL SOURCE REFERENCE [--threads 2] [--repeats 5] [--beam-size 4 1] [--lines N] \
      [--engines NAME ...]

MODEL is a finished training of a Transformer. Every engine translates the same lines in a separate process; loading
and a first pass are not timed. The engines take turns, --repeats times. The table has medians, and the smallest and
largest ratio to bare CTranslate2. It is used with SentencePiece, as its documentation recommends: int8, one worker per
thread, sorted batches of 32; on processors not made by Intel with AVX2 (its default), and with AVX-512 (which transduce
chooses). transformers has sorted batches of 64. Both end searches by their own rules.
BLEU shows that all translations are equally good.
"""

import multiprocessing
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import ctranslate2
import sacrebleu
import torch
from measuring import ratio, run_script
from transformers import MarianMTModel, MarianTokenizer
from transformers.utils import logging

import transduce
from transduce import model_folder
from transduce.decoding.registry import EngineName
from transduce.text.plain import read_lines
from transduce.wings.ct2.convert import convert
from transduce.wings.ct2.registers import use_wide_registers
from transduce.wings.export import huggingface

Translate = Callable[[list[str]], list[str]]
# From a model folder, a beam size and a number of threads.
Make = Callable[[Path, int, int], Translate]


class Side(NamedTuple):
    """An engine in a separate process, its translations and its times."""

    connection: Connection
    found: list[str]
    seconds: list[float]


def main(
    model: Path,
    source: str,
    reference: str,
    *,
    threads: int = 2,
    repeats: int = 5,
    beam_size: list[int] | None = None,
    lines: int | None = None,
    engines: list[str] | None = None,
) -> None:
    """Measure the engines whose names begin with those of `engines`, on the first `lines` lines."""
    sources, references = (list(islice(read_lines(file), lines)) for file in (source, reference))
    print(f"{model}, {len(sources):,} sentences, {threads} threads, ctranslate2 "
          f"{ctranslate2.__version__}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}\n")  # fmt: skip
    print("| beam | engine | seconds | sentences/s | relative to the bare engine | BLEU |")
    print("| --- | --- | --- | --- | --- | --- |")
    makers: dict[str, Make] = {
        "bare CTranslate2, int8": bare,
        "bare CTranslate2, int8, AVX-512": bare_wide,
    }
    makers["transformers"] = marian
    makers |= {
        f"transduce, {engine}": partial(ours, engine=engine) for engine in ("ctranslate2", "torch")
    }
    if engines:
        makers = {name: make for name, make in makers.items() if name.startswith(tuple(engines))}
    for beam in beam_size or [4, 1]:
        sides = {name: launch(make, model, beam, threads, sources) for name, make in makers.items()}
        for _ in range(repeats):
            for side in sides.values():
                side.connection.send(True)
                side.seconds.append(side.connection.recv())
        first = next(iter(sides.values()))
        for name, side in sides.items():
            side.connection.send(False)
            middle = statistics.median(side.seconds)
            bleu = sacrebleu.corpus_bleu(side.found, [references]).score
            relative = ratio(first.seconds, side.seconds)
            print(
                f"| {beam} | {name} | {middle:.2f} | {len(sources) / middle:.0f} | {relative} | {bleu:.1f} |"
            )


def launch(make: Make, model: Path, beam_size: int, threads: int, sources: list[str]) -> Side:
    """Start an engine's process, and wait until it has translated all sentences once."""
    here, there = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    spawn.Process(
        target=serve, args=(there, make, model, beam_size, threads, sources), daemon=True
    ).start()
    there.close()  # so that `recv` fails if the process ends
    return Side(here, here.recv(), [])


def serve(
    connection: Connection,
    make: Make,
    model: Path,
    beam_size: int,
    threads: int,
    sources: list[str],
) -> None:
    """Send the translations, then the seconds of another pass for each request."""
    torch.set_num_threads(threads)
    translate = make(model, beam_size, threads)
    connection.send(translate(sources))
    while connection.recv():
        began = time.perf_counter()
        translate(sources)
        connection.send(time.perf_counter() - began)


def ours(model: Path, beam_size: int, threads: int, *, engine: EngineName) -> Translate:
    """Translate with `transduce.load`."""
    translator = transduce.load(
        model, {"decode.beam_size": beam_size}, engine=engine, device="cpu", threads=threads
    )
    return lambda texts: [each.text for each in translator.translate(texts)]


def bare(model: Path, beam_size: int, threads: int) -> Translate:
    """Translate with CTranslate2, used as its documentation recommends, and SentencePiece."""
    loaded = model_folder.load(model, threads=threads)
    folder = Path(tempfile.mkdtemp())
    convert(loaded.model, loaded.config.model, folder, "int8")
    engine = ctranslate2.Translator(
        str(folder), compute_type="int8", inter_threads=threads, intra_threads=1
    )

    def translate(texts: list[str]) -> list[str]:
        rows = [[*map(str, row), "2"] for row in loaded.tokenizer.encode_source(texts)]
        results = engine.translate_batch(
            rows,
            beam_size=beam_size,
            max_batch_size=32,
            length_penalty=loaded.config.decode.length_penalty,
        )
        return loaded.tokenizer.decode(
            [[int(token) for token in result.hypotheses[0]] for result in results]
        )

    return translate


def bare_wide(model: Path, beam_size: int, threads: int) -> Translate:
    """Translate as `bare` does, but with AVX-512 on processors that have it, as transduce does."""
    use_wide_registers()
    return bare(model, beam_size, threads)


def marian(model: Path, beam_size: int, threads: int) -> Translate:
    """Translate with transformers, as our export's instructions say: float32, all threads for one batch."""
    loaded = model_folder.load(model, threads=threads)
    folder = Path(tempfile.mkdtemp())
    huggingface.write(loaded, folder, "float32")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # A hint to install sacremoses, which is not needed here.
    with warnings.catch_warnings(action="ignore"):
        tokenizer = MarianTokenizer.from_pretrained(str(folder), local_files_only=True)
    network = MarianMTModel.from_pretrained(str(folder), local_files_only=True).eval()
    alpha = loaded.config.decode.length_penalty

    @torch.inference_mode()
    def translate(texts: list[str]) -> list[str]:
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        found = [""] * len(texts)
        for start in range(0, len(order), 64):
            places = order[start : start + 64]
            batch = tokenizer([texts[place] for place in places], return_tensors="pt", padding=True)
            rows = network.generate(
                **batch, num_beams=beam_size, length_penalty=alpha, max_new_tokens=256
            )
            for place, row in zip(places, rows, strict=True):
                found[place] = tokenizer.decode(
                    row, skip_special_tokens=True, clean_up_tokenization_spaces=False
                )
        return found

    return translate


if __name__ == "__main__":
    os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())
    run_script(main, __doc__)

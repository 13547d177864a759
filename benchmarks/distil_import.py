"""A student of an imported model, with a vocabulary of its own: what it loses, and how much faster it is.

Exports TEACHER to another program's format and imports it again, so that its vocabulary is that of an imported model.
Distils the import on the training text, trains the student, and prints chrF and BLEU of both on the test text, with
paired tests, and their speed with CTranslate2 in int8. The models take turns; the ratios are those of the same rounds:
the median, the smallest and the largest. Loading and a first pass are not timed.

    python benchmarks/distil_import.py TEACHER --train train.en train.de --test test.en test.de --out FOLDER
        [--to marian] [--vocab-size 8000] [--options model.num_decoder_layers=1 train.minutes=60] [--rounds 7]

TEACHER translates one direction. `--to marian` needs model.positions=t2t and model.zero_start=true.
FOLDER keeps the import, the distilled corpus and the student. A repeated call makes only what is missing.
"""

import os
import statistics
import time
from pathlib import Path
from typing import Literal

from measuring import ratio, run_script

import transduce
from transduce.config.parse import parse_assignments
from transduce.decoding.directions import directions_of
from transduce.evaluation.scores import compare
from transduce.model_folder import read_config
from transduce.text.pairs import read_pairs
from transduce.wings.export.exporting import export
from transduce.wings.pretrained.importing import import_model
from transduce.wings.synthetic.command import distill

BEAMS = (4, 1)


def make(
    teacher: Path,
    out: Path,
    train: list[str],
    to: Literal["huggingface", "marian"],
    options: list[str],
    vocab_size: int,
    beam_size: int,
) -> tuple[Path, Path]:
    """The folders of the imported teacher and of its student."""
    exported, imported, data, student = (out / name for name in (to, "import", "data", "student"))
    [direction] = directions_of(read_config(teacher).data)
    if not imported.exists():
        if not exported.exists():
            parity = export(teacher, to, exported)
            print(*(parity.report() if parity else ["not compared"]), flush=True)
        found = import_model(exported, imported, *direction)
        print(f"imported: {found.parameters:,} parameters", flush=True)
    if not data.exists():
        began = time.perf_counter()
        search = (f"decode.beam_size={beam_size}",)
        size = (f"data.vocab_size={vocab_size}",) if vocab_size else ()
        distill(
            imported, out=data, train=tuple(train), own_vocabulary=True, assignments=search + size
        )
        print(f"distilled in {time.perf_counter() - began:.0f} s", flush=True)
    began = time.perf_counter()
    transduce.train(student, train=[data], options=parse_assignments(options))
    print(f"trained in {time.perf_counter() - began:.0f} s", flush=True)
    return imported, student


def main(
    teacher: Path,
    /,
    *,
    train: list[str],
    test: list[str],
    out: Path,
    to: Literal["huggingface", "marian"] = "huggingface",
    options: list[str] | None = None,
    vocab_size: int = 0,
    teacher_beam: int = 4,
    rounds: int = 7,
    threads: int = 1,
) -> None:
    """Make the student, and compare it with its teacher."""
    imported, student = make(teacher, out, train, to, options or [], vocab_size, teacher_beam)
    data = read_config(imported).data
    pairs = list(read_pairs(test, (data.source, data.target)))
    sources = [pair.source for pair in pairs]
    references = [pair.target for pair in pairs]
    models = {f"teacher, beam {teacher_beam}": (imported, teacher_beam)}
    models |= {f"student, beam {beam}": (student, beam) for beam in BEAMS}
    translators = {
        name: transduce.load(
            folder,
            {"decode.beam_size": beam},
            engine="ctranslate2",
            device="cpu",
            threads=threads,
        )
        for name, (folder, beam) in models.items()
    }
    texts = {
        name: [each.text for each in translator.translate(sources)]
        for name, translator in translators.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in translators}
    for number in range(rounds):
        names = list(translators)
        for name in names if number % 2 == 0 else names[::-1]:
            began = time.perf_counter()
            translators[name].translate(sources)
            seconds[name].append(time.perf_counter() - began)
    first = next(iter(translators))
    print(
        f"\n{len(sources):,} sentences, {threads} thread(s), {translators[first].engine.name}, "
        f"load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}\n"
    )
    print(
        "| model | MB | sentences/s | as fast as the teacher | chrF | of the teacher's | p | BLEU |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (folder, _) in models.items():
        bleu, chrf = compare(texts[first], texts[name], references)[:2]
        size = (folder / "model.safetensors").stat().st_size / 1e6
        share = chrf.second.value / chrf.first.value
        print(
            f"| {name} | {size:.1f} | {len(sources) / statistics.median(seconds[name]):.0f} "
            f"| {ratio(seconds[first], seconds[name])} | {chrf.second.value:.2f} | {share:.1%} "
            f"| {chrf.p_value:.3f} | {bleu.second.value:.2f} |"
        )


if __name__ == "__main__":
    run_script(main, __doc__)

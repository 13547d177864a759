"""What a model gains by reading the best match of a translation memory (data.translation_memory).

    python benchmarks/translation_memory.py MODEL MEMORY TEST [--engine auto] [--beam 4]

MEMORY and TEST are bilingual files or folders of them, such as .po files, in the model's direction; MEMORY is what the
model was trained on, and TEST other text. Texts that MEMORY holds are left out of TEST, and so are repeated ones.
Prints sacreBLEU and chrF, for texts by the score of their best match: of the model alone, of the match itself, of the
model with the memory; and the gain in BLEU over the model alone, with its p-value by paired bootstrap.
"""

import tempfile
import time
from pathlib import Path

from measuring import run_script

import transduce
from transduce.decoding.registry import EngineName
from transduce.evaluation.scores import compare, score
from transduce.text.pairs import expand_folders, read_pairs, usable
from transduce.wings.memories.database import Database, Unit

GROUPS = {"0.7 to 1": (0.7, 1.0), "0.5 to 0.7": (0.5, 0.7), "no match": (-1.0, 0.5)}


def main(
    model: Path, memory: str, test: str, *, engine: EngineName = "auto", beam: int = 4
) -> None:
    """Translate TEST with and without the memory, and print the table."""
    translator = transduce.load(model, {"decode.beam_size": beam}, engine=engine)
    direction = translator.require_direction()
    pairs = {
        name: list(usable(read_pairs(expand_folders([name]), direction))) for name in (memory, test)
    }
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "memory.sqlite")
        database.add([Unit(pair.source, pair.target) for pair in pairs[memory]], str(direction))
        known = {pair.source.strip() for pair in pairs[memory]}
        distinct = {pair.source: pair.target for pair in pairs[test]}
        texts = [text for text in distinct if text.strip() not in known]
        found = database.matches(texts, str(direction))
        places = [i for i, matches in enumerate(found) if not matches or matches[0].score < 1]
        texts = [texts[i] for i in places]
        matches = [found[i][0] if found[i] else None for i in places]
        seconds = []
        outputs = []
        for used in (None, database):
            began = time.perf_counter()
            translated = translator.translate(texts, sentences=True, translation_memory=used)
            seconds.append(time.perf_counter() - began)
            outputs.append([each.text for each in translated])
    print(f"{translator}; {len(pairs[memory]):,} units, {len(texts):,} texts")
    print("| best match | texts | alone | match itself | with the memory | gain |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (low, high) in GROUPS.items():
        its = [i for i, match in enumerate(matches) if low <= (match.score if match else 0) < high]
        if not its:
            continue
        references = [distinct[texts[i]] for i in its]
        alone, with_memory = ([output[i] for i in its] for output in outputs)
        cells = []
        for system in (
            alone,
            [match.target if (match := matches[i]) else "" for i in its],
            with_memory,
        ):
            values = score(system, references, language=direction.target)
            cells.append(", ".join(f"{each.value:.1f}" for each in values[:2]))
        if low < 0:
            cells[1] = ""
        bleu = compare(alone, with_memory, references, language=direction.target, ter=False)[0]
        gain = f"{bleu.second.value - bleu.first.value:+.1f} (p = {bleu.p_value:.3f})"
        print(f"| {name} | {len(its):,} | {' | '.join(cells)} | {gain} |")
    print(f"seconds: {seconds[0]:.0f} alone, {seconds[1]:.0f} with the memory")


if __name__ == "__main__":
    run_script(main, __doc__)

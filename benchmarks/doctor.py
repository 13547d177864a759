"""Recall, precision and false alarms of `transduce doctor` on corpora with artificial faults.

    python benchmarks/doctor.py faults CORPUS.tsv OTHER.tsv TEST.tsv --source en --target de [--share 0.02] [--seed 1]
    python benchmarks/doctor.py shifts SOURCE TARGET [SOURCE TARGET …] [--times 10]

OTHER is a corpus of the source language and a third language; it supplies sentences in a wrong language. The script
damages lines, runs `transduce doctor --json`, and compares the reported lines with the damaged lines. `shifts` moves
the lines of one file after a random line, as a missing or a duplicated line does.
"""

import collections
import json
import random
import string
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from measuring import run_script

from transduce.text.pairs import read_pairs
from transduce.text.plain import read_lines

Texts = tuple[str, str]
DOCTOR = [sys.executable, "-m", "transduce", "doctor"]
PLACEHOLDERS = [
    "{0}",
    "%(name)s",
    "%d",
    "<b>x</b>",
    "{{ limit }}",
    "https://example.org/a?b=1",
    ":func:`x`",
    "{user.name}",
]
# Target lines that are inserted or removed; 0: a line of one side is missing.
SHIFTS = (3, -2, 1, 0)


class Material(NamedTuple):
    """What faults are made of."""

    draw: random.Random
    clean: list[Texts]
    other: list[Texts]
    test: list[Texts]


class Fault(NamedTuple):
    """A kind of fault, and the rule that should report it."""

    rule: str
    plant: Callable[[Texts, Material], Texts]
    suits: Callable[[Texts], bool] = bool


# -- faults ------------------------------------------------------------------------------------------------------------


def repeat_nearly(_: Texts, material: Material) -> Texts:
    """A pair of the first tenth with another case or punctuation."""
    pair = repeated(_, material)
    ways: list[Callable[[str], str]] = [
        str.upper,
        str.lower,
        lambda text: text.rstrip(".!?"),
        lambda text: f"„{text}“",
        lambda text: f"{text} …",
    ]
    source, target = (material.draw.choice(ways)(text) for text in pair)
    return (source, target) if (source, target) != pair else (f"{source}!", f"{target}!")


def repeated(_: Texts, material: Material) -> Texts:
    """A pair of the first tenth, which has no faults."""
    return material.clean[material.draw.randrange(len(material.clean) // 10)]


def joined(pair: Texts, material: Material) -> Texts:
    others = material.draw.sample(material.clean, 2)
    return pair[0], " ".join([pair[1], *(target for _, target in others)])


def with_broken_character(pair: Texts, material: Material) -> Texts:
    sides = [*pair]
    side = material.draw.randrange(2)
    at = material.draw.randrange(len(sides[side]))
    broken = material.draw.choice("\ufffd\x02\x0b\x8a\x1a")
    sides[side] = sides[side][:at] + broken + sides[side][at + 1 :]
    return sides[0], sides[1]


def with_another_number(pair: Texts, material: Material) -> Texts:
    """Change one digit of the target."""
    text = pair[1]
    places = [place for place, character in enumerate(text) if character.isdigit()]
    if not places:
        return pair[0], f"{text} {material.draw.randint(13, 9999)}"
    at = material.draw.choice(places)
    digit = material.draw.choice([digit for digit in "123456789" if digit != text[at]])
    return pair[0], text[:at] + digit + text[at + 1 :]


def with_another_placeholder(pair: Texts, material: Material) -> Texts:
    what = next(each for each in PLACEHOLDERS if each in pair[1])
    return pair[0], pair[1].replace(what, material.draw.choice(["", "{1}", what[:-1], what * 2]))


def misread(pair: Texts, _: Material) -> Texts:
    """Decode the target's UTF-8 bytes as Windows-1252, or as Latin-1 where Windows-1252 has no character."""
    undefined = (0x81, 0x8D, 0x8F, 0x90, 0x9D)
    codecs = (("latin-1" if byte in undefined else "cp1252", byte) for byte in pair[1].encode())
    return pair[0], "".join(bytes([byte]).decode(codec) for codec, byte in codecs)


def with_test_sentence(pair: Texts, material: Material) -> Texts:
    source, target = material.draw.choice(material.test)
    return material.draw.choice([(source.upper(), pair[1]), (pair[0], target)])


def is_marked(pair: Texts) -> bool:
    return any(each in pair[0] and each in pair[1] for each in PLACEHOLDERS)


def is_numbered(pair: Texts) -> bool:
    return any(map(str.isdigit, pair[0])) and not is_marked(pair)


FAULTS = {
    "another number": Fault("numbers", with_another_number, is_numbered),
    "another placeholder": Fault("placeholders", with_another_placeholder, is_marked),
    "wrong encoding": Fault("mojibake", misread, lambda pair: not pair[1].isascii()),
    "target is the source": Fault("copied", lambda pair, _: (pair[0], pair[0])),
    "target in a third language": Fault("target-language", lambda _, from_: from_.other.pop()),
    "source in a third language": Fault(
        "source-language", lambda pair, from_: (from_.other.pop()[1], pair[1])
    ),
    "sides swapped": Fault("swapped", lambda pair, _: (pair[1], pair[0])),
    "target cut to a third": Fault(
        "broken-off", lambda pair, _: (pair[0], pair[1][: max(1, len(pair[1]) // 3)])
    ),
    "target joined with two others": Fault("joined", joined),
    "broken characters": Fault("characters", with_broken_character, all),
    "a blank side": Fault(
        "empty", lambda pair, from_: from_.draw.choice([(pair[0], " "), ("", pair[1])])
    ),
    "a test sentence": Fault("test", with_test_sentence),
    "another line's target": Fault(
        "unrelated", lambda pair, from_: (pair[0], from_.draw.choice(from_.clean)[1])
    ),
    "exact repetition": Fault("duplicate", repeated),
    "near repetition": Fault("near-duplicate", repeat_nearly),
}


def faults(files: Sequence[str], languages: Texts, share: float, draw: random.Random) -> None:
    """Print recall and precision for every fault, and the false alarms on the undamaged corpus."""
    corpus, other, test = (
        [(pair.source, pair.target) for pair in read_pairs([file])] for file in files
    )
    draw.shuffle(other)
    clean = numbered(corpus, draw, share)
    damaged, planted = plant(Material(draw, clean, other, test), int(share * len(clean)))
    options = ["--from", languages[0], "--to", languages[1], "--test", files[2]]
    with tempfile.TemporaryDirectory() as folder:
        before = diagnose(clean, Path(folder) / "clean.tsv", options)
        after = diagnose(damaged, Path(folder) / "damaged.tsv", options)
    print(f"{len(corpus):,} pairs, {share:.0%} of each fault\n")
    print("| fault | found by its rule | by any rule | precision | any fault | false alarms |")
    print("| --- | --- | --- | --- | --- | --- |")
    anything = set().union(*after.values())
    touched = set().union(*planted.values())
    for name, lines in planted.items():
        named = after[FAULTS[name].rule]
        shares = [len(lines & found) / len(lines) for found in (named, anything)]
        shares += [len(named & right) / max(1, len(named)) for right in (lines, touched)]
        alarms = len(before[FAULTS[name].rule])
        cells = " | ".join(f"{each:.1%}" for each in shares)
        print(f"| {name} | {cells} | {alarms:,} ({alarms / len(clean):.3%}) |")
    alarms = len(set().union(*before.values()))
    print(f"\nFalse alarms in the clean text: {alarms:,} pairs ({alarms / len(clean):.2%}):")
    print(", ".join(f"{rule} {len(lines):,}" for rule, lines in sorted(before.items()) if lines))
    print(f"Of the damaged text, {len(anything - touched):,} reported pairs have no planted fault.")


def numbered(corpus: Sequence[Texts], draw: random.Random, share: float) -> list[Texts]:
    """Add numbers and placeholders to both sides of some pairs, since everyday sentences have few."""
    pairs = list(corpus)
    count = int(2 * share * len(corpus))
    for order, place in enumerate(draw.sample(range(len(pairs)), 2 * count)):
        what = str(draw.randint(13, 9999)) if order < count else draw.choice(PLACEHOLDERS)
        pairs[place] = put(pairs[place][0], what), put(pairs[place][1], what)
    return pairs


def put(text: str, what: str) -> str:
    """Insert a word before the final punctuation of a sentence."""
    stem = text.rstrip(string.punctuation + " ")
    return f"{stem} {what}{text[len(stem) :]}"


def plant(material: Material, count: int) -> tuple[list[Texts], dict[str, set[int]]]:
    """Damage the corpus; returns it, and the line numbers (from 1) of every fault. A line has at most one fault."""
    pairs = list(material.clean)
    free = list(range(len(pairs) // 10, len(pairs)))
    material.draw.shuffle(free)
    planted: dict[str, set[int]] = {}
    for name, fault in FAULTS.items():
        chosen = [place for place in free if fault.suits(pairs[place])][:count]
        free = [place for place in free if place not in set(chosen)]
        planted[name] = {place + 1 for place in chosen}
        for place in chosen:
            pairs[place] = fault.plant(pairs[place], material)
    return pairs, planted


def diagnose(pairs: Sequence[Texts], file: Path, options: Sequence[str]) -> dict[str, set[int]]:
    """Run `transduce doctor` on pairs, and return the lines that each rule reports."""
    text = "".join(f"{source}\t{target}\n" for source, target in pairs)
    file.write_text(text, encoding="utf-8", newline="\n")
    report = run([str(file), *options])
    found = {rule: {line for _, line in each["lines"]} for rule, each in report["rules"].items()}
    return collections.defaultdict(set, found)


def run(arguments: Sequence[str]) -> dict[str, Any]:
    command = [*DOCTOR, *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# -- shifts ------------------------------------------------------------------------------------------------------------


def shifts(files: Sequence[str], times: int, draw: random.Random) -> None:
    """Print how many shifts are found and how exactly, the pairs that --fix writes, and false alarms.

    kept: the share of the pairs with both texts that --fix writes; wrong: the number of wrong pairs that it writes.
    """
    print("| text | shift | tried | found with the right size | largest distance | kept | wrong |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for source, target in zip(files[::2], files[1::2], strict=True):
        sides = list(read_lines(source)), list(read_lines(target))
        pairs = collections.Counter(zip(*sides, strict=True))
        name = f"{Path(source).name} {Path(target).name}"
        print(f"| {name}, unchanged | | | {len(repaired(*sides)[0])} false alarms | | | |")
        for shift in SHIFTS:
            distances = []
            right = 0
            wrong = 0
            there = 0
            for _ in range(times):
                sources, targets, at, offset = shifted(*sides, shift, draw)
                found, kept = repaired(sources, targets)
                if [each["offset"] for each in found] == [offset]:
                    distances.append(abs(found[0]["first"] - 1 - at))
                good = (collections.Counter(kept) & pairs).total()
                right += good
                wrong += len(kept) - good
                there += len(sides[0]) - abs(offset)
            cells = [times, len(distances), max(distances, default="–"), f"{right / there:.2%}"]
            cells.append(wrong)
            row = " | ".join(map(str, cells))
            print(f"| {name} | {shift or 'a line missing'} | {row} |", flush=True)


def shifted(
    sources: list[str], targets: list[str], shift: int, draw: random.Random
) -> tuple[list[str], list[str], int, int]:
    """Insert or remove target lines at a random line, or remove a line of one side; with the place and the offset."""
    at = draw.randrange(100, len(sources) - 100)
    if shift > 0:
        return (
            sources,
            [*targets[:at], *draw.sample(targets, shift), *targets[at:-shift]],
            at,
            shift,
        )
    if shift < 0:
        kept = [*targets[:at], *targets[at - shift :]]
        return sources, [*kept, *draw.sample(targets, -shift)], at, shift
    if draw.randrange(2):
        return sources, targets[:at] + targets[at + 1 :], at, -1
    return sources[:at] + sources[at + 1 :], targets, at, 1


def repaired(
    sources: Sequence[str], targets: Sequence[str]
) -> tuple[list[dict[str, Any]], list[Texts]]:
    """Run `transduce doctor --fix`; returns the misaligned ranges of lines and the pairs it writes."""
    with tempfile.TemporaryDirectory() as folder:
        files, fixed = (
            [Path(folder) / f"{name}{side}" for side in "ab"] for name in ("damaged-", "repaired-")
        )
        for file, lines in zip(files, (sources, targets), strict=True):
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        options = ["--only", "misaligned", "--threads", "1", "--fix", *map(str, fixed)]
        found = run([*map(str, files), *options])["stretches"]
        return found, list(zip(*(read_lines(str(file)) for file in fixed), strict=True))


def main(
    what: Literal["faults", "shifts"],
    *files: str,
    source: str = "en",
    target: str = "de",
    share: float = 0.02,
    seed: int = 1,
    times: int = 10,
) -> None:
    """Measure how many faults or shifts are found."""
    draw = random.Random(seed)
    if what == "faults":
        faults(files, (source, target), share, draw)
    else:
        shifts(files, times, draw)


if __name__ == "__main__":
    run_script(main, __doc__)

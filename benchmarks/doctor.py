"""Recall, precision, false alarms and speed of `transduce doctor` on corpora with artificial faults.

    python benchmarks/doctor.py faults CORPUS.tsv OTHER.tsv TEST.tsv --from en --to de [--share 0.02] [--seed 1]
    python benchmarks/doctor.py shifts SOURCE TARGET [SOURCE TARGET …] [--times 10]
    python benchmarks/doctor.py speed CORPUS.tsv --from en --to de [--rounds 3] [--threads 2]

OTHER is a corpus of the source language and a third language; it supplies sentences in a wrong language. The script
damages lines, runs `transduce doctor --json`, and compares the reported lines with the damaged lines. `shifts` moves
the lines of one file after a random line, as a missing or a duplicated line does.
"""

import argparse
import bisect
import collections
import json
import random
import statistics
import string
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transduce.text.pairs import read_pairs
from transduce.text.plain import read_lines

Texts = tuple[str, str]
DOCTOR = [sys.executable, "-m", "transduce", "doctor"]
RULES_BY_FAULT = {  # fault -> the rules that should report it
    "exact repetition": {"duplicate"},
    "near repetition": {"near-duplicate"},
    "target is the source": {"copied"},
    "target in a third language": {"target-language"},
    "source in a third language": {"source-language"},
    "sides swapped": {"swapped"},
    "target cut to a third": {"broken-off"},
    "target joined with two others": {"joined"},
    "wrong encoding": {"mojibake"},
    "broken characters": {"characters"},
    "another number": {"numbers"},
    "another placeholder": {"placeholders"},
    "a blank side": {"empty"},
    "a test sentence": {"test"},
    "another line's target": {"unrelated"},
}
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["faults", "shifts", "speed"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--from", dest="source", default="en")
    parser.add_argument("--to", dest="target", default="de")
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    {"faults": faults, "shifts": shifts, "speed": speed}[arguments.what](arguments)


# -- faults ------------------------------------------------------------------------------------------------------------


def faults(arguments: argparse.Namespace) -> None:
    """Print recall and precision for every fault, and the false alarms on the undamaged corpus."""
    corpus, other, test = (
        [(pair.source, pair.target) for pair in read_pairs([file])] for file in arguments.files
    )
    choice = random.Random(arguments.seed)
    clean = numbered(corpus, choice, arguments.share)
    damaged, planted = plant(clean, other, test, choice, arguments.share)
    languages = ["--from", arguments.source, "--to", arguments.target, "--test", arguments.files[2]]
    with tempfile.TemporaryDirectory() as folder:
        before = lines_by_rule(diagnose(clean, Path(folder) / "clean.tsv", languages))
        after = lines_by_rule(diagnose(damaged, Path(folder) / "damaged.tsv", languages))
    print(f"{len(corpus):,} pairs, {arguments.share:.0%} of each fault\n")
    print(
        "| fault | planted | found by its rule | found by any rule | precision | precision, any fault | false alarms |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    anything = set().union(*after.values())
    touched = set().union(*planted.values())
    for fault, rules in RULES_BY_FAULT.items():
        lines = planted[fault]
        named = set().union(*(after[rule] for rule in rules))
        # Two faults may have the same rule; a line with either fault is no false alarm.
        right = set().union(
            *(planted[each] for each, others in RULES_BY_FAULT.items() if others & rules)
        )
        alarms = sum(len(before[rule]) for rule in rules)
        precision = [
            f"{len(named & each) / len(named):.1%}" if named else "" for each in (right, touched)
        ]
        recall = f"{len(lines & named) / len(lines):.1%}" if rules else "–"
        found = f"{recall} | {len(lines & anything) / len(lines):.1%}"
        print(
            f"| {fault} | {len(lines):,} | {found} | {' | '.join(precision)} "
            f"| {f'{alarms:,} ({alarms / len(clean):.3%})' if rules else ''} |"
        )
    alarms = len(set().union(*before.values()))
    print(
        f"\nOf the clean text, {alarms:,} pairs ({alarms / len(clean):.2%}) are reported as faulty:"
    )
    print(", ".join(f"{rule} {len(lines):,}" for rule, lines in sorted(before.items()) if lines))
    print(f"Of the damaged text, {len(anything - touched):,} reported pairs have no planted fault.")


def numbered(corpus: Sequence[Texts], choice: random.Random, share: float) -> list[Texts]:
    """Add numbers and placeholders to both sides of some pairs, since everyday sentences have few."""
    pairs = list(corpus)
    count = int(2 * share * len(corpus))
    places = choice.sample(range(len(pairs)), 2 * count)
    for order, place in enumerate(places):
        what = str(choice.randint(13, 9999)) if order < count else choice.choice(PLACEHOLDERS)
        pairs[place] = put(pairs[place][0], what), put(pairs[place][1], what)
    return pairs


def put(text: str, what: str) -> str:
    """Insert a word before the final punctuation of a sentence."""
    stem = text.rstrip(string.punctuation + " ")
    return f"{stem} {what}{text[len(stem) :]}"


def plant(
    clean: Sequence[Texts],
    other: Sequence[Texts],
    test: Sequence[Texts],
    choice: random.Random,
    share: float,
) -> tuple[list[Texts], dict[str, set[int]]]:
    """Damage the corpus; returns it, and the line numbers (from 1) of every fault. A line has at most one fault."""
    pairs = list(clean)
    count = int(share * len(clean))
    # The first tenth: undamaged, the source of repeated lines.
    free = list(range(len(pairs) // 10, len(pairs)))
    choice.shuffle(free)
    has_number = {
        place
        for place in free
        if any(c.isdigit() for c in clean[place][0]) and not marked(clean[place])
    }
    planted: dict[str, set[int]] = {}
    taken: set[int] = set()

    def take(fault: str, suits: Callable[[int], bool] = bool) -> list[int]:
        chosen = [place for place in free if place not in taken and suits(place)][:count]
        taken.update(chosen)
        planted[fault] = {place + 1 for place in chosen}
        return chosen

    for place in take("another number", lambda place: place in has_number):
        source, target = clean[place]
        pairs[place] = source, another_number(target, choice)
    for place in take("another placeholder", lambda place: marked(clean[place])):
        source, target = clean[place]
        what = next(each for each in PLACEHOLDERS if each in target)
        instead = choice.choice(["", "{1}", what[:-1], what * 2])
        pairs[place] = source, target.replace(what, instead)
    for place in take("wrong encoding", lambda place: not clean[place][1].isascii()):
        pairs[place] = clean[place][0], misread(clean[place][1])
    for place in take("target is the source"):
        pairs[place] = clean[place][0], clean[place][0]
    for place, foreign in zip(
        take("target in a third language"), choice.sample(other, count), strict=True
    ):
        pairs[place] = foreign
    for place, foreign in zip(
        take("source in a third language"), choice.sample(other, count), strict=True
    ):
        pairs[place] = foreign[1], clean[place][1]
    for place in take("sides swapped"):
        pairs[place] = clean[place][1], clean[place][0]
    for place in take("target cut to a third"):
        pairs[place] = clean[place][0], clean[place][1][: max(1, len(clean[place][1]) // 3)]
    for place in take("target joined with two others"):
        pairs[place] = (
            clean[place][0],
            " ".join([clean[place][1], *(each[1] for each in choice.sample(clean, 2))]),
        )
    for place in take("broken characters"):
        side = choice.randrange(2)
        at = choice.random()
        sides = list(clean[place])
        at = int(at * len(sides[side]))
        sides[side] = (
            sides[side][:at] + choice.choice("\ufffd\x02\x0b\x8a\x1a") + sides[side][at + 1 :]
        )
        pairs[place] = sides[0], sides[1]
    for place in take("a blank side"):
        side = choice.randrange(2)
        pairs[place] = (clean[place][0], " ") if side else ("", clean[place][1])
    for place, known in zip(take("a test sentence"), choice.choices(test, k=count), strict=True):
        pairs[place] = (
            (known[0].upper(), clean[place][1])
            if choice.random() < 0.5
            else (clean[place][0], known[1])
        )
    lines = take("another line's target")
    for place, next_one in zip(lines, [*lines[1:], lines[0]], strict=True):
        pairs[place] = clean[place][0], clean[next_one][1]
    exact = take("exact repetition")
    near = take("near repetition")
    untouched = sorted(set(range(len(pairs))) - taken)
    for place in (*exact, *near):
        before = untouched[choice.randrange(bisect.bisect_left(untouched, place))]
        pairs[place] = pairs[before]
        if place + 1 in planted["near repetition"]:
            pairs[place] = nearly(pairs[before][0], choice), nearly(pairs[before][1], choice)
            if pairs[place] == pairs[before]:
                pairs[place] = pairs[before][0] + "!", pairs[before][1] + "!"
    return pairs, planted


def marked(pair: Texts) -> bool:
    return any(each in pair[0] and each in pair[1] for each in PLACEHOLDERS)


def another_number(text: str, choice: random.Random) -> str:
    """Change one digit of the text."""
    places = [place for place, character in enumerate(text) if character.isdigit()]
    if not places:
        return f"{text} {choice.randint(13, 9999)}"
    at = choice.choice(places)
    return (
        text[:at]
        + choice.choice([digit for digit in "123456789" if digit != text[at]])
        + text[at + 1 :]
    )


def misread(text: str) -> str:
    """Decode the text's UTF-8 bytes as Windows-1252, or as Latin-1 where Windows-1252 has no character."""
    return "".join(
        bytes([byte]).decode("cp1252") if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(byte)
        for byte in text.encode()
    )


def nearly(text: str, choice: random.Random) -> str:
    """Change the text's case or punctuation."""
    ways = [
        str.upper,
        str.lower,
        lambda each: each.rstrip(".!?"),
        lambda each: f"„{each}“",
        lambda each: f"{each} …",
    ]
    return choice.choice(ways)(text)


def diagnose(pairs: Sequence[Texts], file: Path, options: Sequence[str]) -> dict[str, Any]:
    """Run `transduce doctor` on pairs, and return its JSON report."""
    file.write_text(
        "".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8", newline="\n"
    )
    return run([str(file), *options])


def run(arguments: Sequence[str]) -> dict[str, Any]:
    done = subprocess.run(
        [*DOCTOR, *arguments, "--json"], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def lines_by_rule(report: dict[str, Any]) -> dict[str, set[int]]:
    found = {rule: {line for _, line in each["lines"]} for rule, each in report["rules"].items()}
    return collections.defaultdict(set, found)


# -- shifts ------------------------------------------------------------------------------------------------------------


def shifts(arguments: argparse.Namespace) -> None:
    """Print how many shifts are found and how exactly, the pairs that --fix writes, and false alarms.

    kept: the share of the pairs with both texts that --fix writes; wrong: the number of wrong pairs that it writes.
    """
    for times in ("false alarms", "shifts"), ("one line missing",):
        print(
            f"| text | lines | {' | '.join(times)} | found with the right size | largest distance | kept | wrong |"
        )
        print(f"| {' | '.join(['---'] * (6 + len(times)))} |")
        choice = random.Random(arguments.seed)
        for source, target in zip(arguments.files[::2], arguments.files[1::2], strict=True):
            sides = list(read_lines(source)), list(read_lines(target))
            counts = [arguments.times]
            if len(times) == 2:
                counts = [len(repaired(*sides)[0]), 3 * arguments.times]
                damaged = [
                    shifted(*sides, shift, choice)
                    for _ in range(arguments.times)
                    for shift in (3, -2, 1)
                ]
            else:
                damaged = [one_missing(*sides, choice) for _ in range(arguments.times)]
            distances = []
            right = 0
            there = 0
            wrong = 0
            for sources, targets, at, shift in damaged:
                found, kept = repaired(sources, targets)
                if [each["offset"] for each in found] == [shift]:
                    distances.append(abs(found[0]["first"] - 1 - at))
                good = collections.Counter(kept) & collections.Counter(zip(*sides, strict=True))
                right = right + good.total()
                wrong = wrong + len(kept) - good.total()
                there += len(sides[0]) - abs(shift)
            cells = [
                *counts,
                len(distances),
                max(distances, default="–"),
                f"{right / there:.2%}",
                wrong,
            ]
            name = f"{Path(source).name} {Path(target).name}"
            print(f"| {name} | {len(sides[0]):,} | {' | '.join(map(str, cells))} |", flush=True)


def shifted(
    sources: list[str], targets: list[str], shift: int, choice: random.Random
) -> tuple[list[str], list[str], int, int]:
    """Insert or remove target lines at a random line; the number of lines stays the same."""
    at = choice.randrange(100, len(sources) - 100)
    if shift > 0:
        return (
            sources,
            [*targets[:at], *choice.sample(targets, shift), *targets[at:-shift]],
            at,
            shift,
        )
    return (
        sources,
        [*targets[:at], *targets[at - shift :], *choice.sample(targets, -shift)],
        at,
        shift,
    )


def one_missing(
    sources: list[str], targets: list[str], choice: random.Random
) -> tuple[list[str], list[str], int, int]:
    """Remove a random line of one side."""
    at = choice.randrange(100, len(sources) - 100)
    if choice.randrange(2):
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


# -- speed -------------------------------------------------------------------------------------------------------------


def speed(arguments: argparse.Namespace) -> None:
    """Print pairs a second with and without the slow rules; the program's start is not timed."""
    languages = [
        "--from",
        arguments.source,
        "--to",
        arguments.target,
        "--threads",
        str(arguments.threads),
    ]
    without = ["--without", "swapped", "source-language", "target-language"]
    fast = ("all but languages and unrelated", [*without, "unrelated"])
    print("| rules | pairs | pairs/s | range |")
    print("| --- | --- | --- | --- |")
    for name, options in (fast, ("all but languages", without), ("all", [])):
        rates = []
        for _ in range(arguments.rounds):
            report = run([*arguments.files, *languages, *options])
            rates.append(report["pairs"] / report["seconds"])
        pairs = report["pairs"]
        print(
            f"| {name} | {pairs:,} | {statistics.median(rates):,.0f} | {min(rates):,.0f} to {max(rates):,.0f} |"
        )


if __name__ == "__main__":
    main()

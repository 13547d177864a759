"""Files of lines, however many: each line's translation, the line that is written of it, and which need a look."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self

from transduce.config.schema import DataConfig
from transduce.decoding.glossary import Term
from transduce.decoding.translator import Translation, Translator

KEPT = 10  # lines of each flag


@dataclass(frozen=True)
class Form:
    """What is wanted of every line."""

    n_best: int = 1
    sentences: bool = False  # a line is a text of several sentences
    alignment: bool = False
    json: bool = False  # also where there is more to write than a text

    @property
    def objects(self) -> bool:
        """Whether a line is written as a JSON object."""
        return self.json or self.alignment or self.n_best > 1


@dataclass
class Flags:
    """Lines that need a look: how many by flag, and the first of them."""

    counts: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def note(self, flags: Iterable[str], line: int) -> None:
        """Count the flags of a line."""
        for flag in flags:
            self.counts[flag] = self.counts.get(flag, 0) + 1
            if len(known := self.lines.setdefault(flag, [])) < KEPT:
                known.append(line)

    def add(self, later: Self) -> None:
        """Count those of lines that follow."""
        for flag, number in later.counts.items():
            self.counts[flag] = self.counts.get(flag, 0) + number
            self.lines[flag] = (self.lines.get(flag, []) + later.lines[flag])[:KEPT]


def translate_all(
    translator: Translator,
    lines: Iterable[str],
    form: Form,
    data: DataConfig,
    glossary: Sequence[Term] = (),
    first: int = 1,
) -> Iterator[Translation]:
    """The translations of lines, some thousand at a time; data: what the model was trained on.

    Complaints number the lines from `first`.
    """
    if not form.sentences and not translator.tokenizer.has_stand_ins:
        return translator.translate_lines(
            lines, n_best=form.n_best, align=form.alignment, glossary=glossary, first=first
        )
    from transduce.decoding.documents import translate_paragraphs  # too slow for a line

    return translate_paragraphs(
        translator,
        lines,
        data.source if form.sentences else None,
        n_best=form.n_best,
        align=form.alignment,
        glossary=glossary,
        longest=data.max_length if form.sentences else None,
        numbers=count(first),
    )


def written(translation: Translation, form: Form) -> str:
    """A translation as the line to write, without its line feed."""
    if not form.objects:
        return translation.text
    return json.dumps(_object(dataclasses.asdict(translation), form.alignment), ensure_ascii=False)


def _object(translation: dict[str, Any], alignment: bool) -> dict[str, Any]:
    """What is written of a translation, and of its alternatives: links only where they were asked for, by name."""
    links = translation.pop("links")
    if alignment:
        translation["alignment"] = [link._asdict() for link in links]
    translation["alternatives"] = [_object(each, alignment) for each in translation["alternatives"]]
    return translation

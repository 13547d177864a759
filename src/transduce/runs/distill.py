"""Sequence-level distillation (Kim and Rush, 2016): a corpus whose targets are a teacher's translations.

What a teacher writes is more regular than what people write, so a smaller, faster student can learn it.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Sequence
from itertools import chain, tee
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from transduce.config import DataConfig
from transduce.corpus.clean import CUT_OFF, Cleaning
from transduce.corpus.pairs import Pair
from transduce.decoding.translator import CUT, Translator
from transduce.errors import UserError
from transduce.files import MANIFEST, digest
from transduce.journal import say, telling
from transduce.preparation import Prepared, prepare


def distill(
    translator: Translator,
    teachers: Sequence[Path],
    data: DataConfig,
    out: Path,
    *,
    keep_original: bool = False,
    threads: int = 1,
) -> Prepared:
    """Prepare the corpus in the new folder `out` with the teachers' vocabulary, its targets translated by them.

    translator: the model of the folder `teachers`, or their ensemble. What is held out stays as it was. Translations
    that the search had to cut, and pairs that are no good by the rules of the corpus, are left out and counted.
    keep_original: the pairs as they were are trained on, too. What is translated is kept in a file beside `out` until
    all is, so that the same call goes on there. Raises UserError as `prepare` does, and if another call has begun.
    """
    names = [str(folder) for folder in teachers]
    hashes = [digest(folder / MANIFEST) for folder in teachers if (folder / MANIFEST).is_file()]
    call = {"teachers": names, "hashes": hashes, "engine": translator.engine.name}
    with _Kept(out.parent / f".{out.name}.translations", call | dataclasses.asdict(translator.config)) as kept:
        prepared = prepare(
            data,
            out,
            vocab_size=lambda _: translator.tokenizer.target_size,
            tokenizer=translator.tokenizer,
            threads=threads,
            rewrite=lambda pairs, cleaning: _rewritten(_translated(pairs, translator, kept), cleaning, keep_original),
        )
    kept.path.unlink(missing_ok=True)
    return prepared


def _rewritten(lines: Iterator[tuple[Pair, "Line"]], cleaning: Cleaning, keep_original: bool) -> Iterator[Pair]:
    """The pairs with their translations as targets, unless these were cut off."""
    for pair, line in lines:
        if keep_original:
            yield pair
        if line.cut:
            cleaning.count(CUT_OFF, pair.origin)
        else:
            yield pair._replace(target=line.text)


def _translated(pairs: Iterator[Pair], translator: Translator, kept: "_Kept") -> Iterator[tuple[Pair, "Line"]]:
    """The pairs with their translations, those that an earlier call has made first."""
    for pair in pairs:
        line = kept.next(pair.source)
        if line is None:
            pairs = chain((pair,), pairs)
            break
        yield pair, line
    pairs, sources = tee(pairs)
    translations = telling(translator.translate_lines(pair.source for pair in sources), "lines translated")
    for pair, translation in zip(pairs, translations, strict=True):
        line = Line(pair.source, translation.text, CUT in translation.flags)
        kept.add(line)
        yield pair, line


class Line(NamedTuple):
    """A translation, as it is kept on the way."""

    source: str
    text: str
    cut: bool


class _Kept:
    """A file of translations, a JSON list a line, behind one that says by what call they were made."""

    def __init__(self, path: Path, call: dict[str, Any]) -> None:
        self.path = path
        head = json.dumps(call).encode() + b"\n"
        self._made = [folder for folder in path.parents if not folder.exists()]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise UserError(f"{path} can't be written: {error.strerror}; give another --out.") from None
        self._file.seek(0)
        lines = self._file.read().split(b"\n")
        whole = len(lines) - 1  # behind the last line feed there is nothing, or a line that a crash left torn
        self._file.truncate(sum(map(len, lines[:whole])) + whole)
        if not whole:
            self._file.write(head)
        elif lines[0] + b"\n" != head:
            raise UserError(
                f"{path} holds the translations of a distillation that began with another model, engine or other "
                "options: repeat that one, or remove the file."
            )
        self._old = iter(lines[1:whole])
        self._empty = whole < 2
        if whole > 1:
            say(f"Going on behind {whole - 1:,} translations that are there already.")

    def next(self, source: str) -> Line | None:
        """The next translation that is there already, if any; raises UserError if it is that of another source."""
        old = next(self._old, None)
        if old is None:
            return None
        try:
            line = Line(*json.loads(old))
        except (ValueError, TypeError):
            raise UserError(f"{self.path} is damaged: remove it to begin anew.") from None
        if line.source != source:
            raise UserError(f"{self.path} holds the translations of another corpus: remove it to begin anew.")
        return line

    def add(self, line: Line) -> None:
        """Keep one more."""
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._empty = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        if self._empty:
            self.path.unlink()
            with contextlib.suppress(OSError):  # something else lies there by now
                for folder in self._made:
                    folder.rmdir()

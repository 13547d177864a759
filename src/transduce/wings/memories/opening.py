"""Opens a translation memory, and reads bilingual files into it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.text.multilingual import LABEL, BilingualCorpus, bilingual_corpora
from transduce.text.pairs import Pair, expand_folders, read_pairs, usable
from transduce.text.plain import read_lines, suffixes
from transduce.wings.memories.database import Database, Unit

DATABASES = (".sqlite", ".db")
WITHOUT_LANGUAGES = (".tsv", ".po", ".pot")


def open_memory(name: str, directions: Sequence[Direction], *, make: bool = False) -> Database:
    """Open a translation memory for a model's `directions`: a database or files. `make`: a missing database is made.

    A bilingual file or a folder of such files, as memory.tmx, is read into a database beside it, memory.tmx.sqlite;
    later, only files that have changed are read again. With several directions, a file that does not name its
    languages is written as en,de=memory.tsv. Raises UserError if a file can't be read, or has no unit in a direction.
    """
    label = LABEL.fullmatch(name)
    path = Path(label[2] if label else name)
    is_database = path.suffix in DATABASES
    if not path.exists() and not (is_database and make):
        next(read_lines(str(path)), None)  # raises the error for a missing file
    if is_database:
        return Database(path)
    corpora = _corpora(name, directions)
    memory = Database(path.with_name(f"{path.name}.sqlite"))
    for files, languages in corpora:
        for direction in {languages, languages.reverse}.intersection(directions):
            for file in files:
                try:
                    _read(memory, file, languages, direction)
                except UserError as error:
                    if len(corpora) == 1:
                        raise
                    log(f"Warning: {error}")  # a file may have some of the languages only
    memory.keep_files({str(Path(file).resolve()) for files, _ in corpora for file in files})
    known = {each: memory.count(str(each)) for each in directions}
    if not any(known.values()):
        said = ", ".join(map(str, directions))
        raise UserError(f"{name} has no unit in the model's directions: {said}.")
    for direction, number in known.items():
        if number:
            log(f"Memory {memory.path}: {count(number, 'unit')} {direction}")
        if several := memory.contradictions(str(direction)):
            log(
                f"{count(several, 'source')} in {name} have different translations; the last one counts."
            )
    return memory


def _corpora(name: str, directions: Sequence[Direction]) -> list[BilingualCorpus]:
    """The files of a memory with their languages."""
    if LABEL.fullmatch(name):
        return bilingual_corpora([name])
    files = expand_folders([name])
    for file in files:
        if len(directions) > 1 and suffixes(file)[0] in WITHOUT_LANGUAGES:
            raise UserError(
                f"{file} does not name its languages.",
                f"Write their codes first, such as en,de={name}.",
            )
    if len(directions) == 1:
        return [BilingualCorpus(tuple(files), directions[0])]
    pairs = dict.fromkeys(Direction(*sorted(each)) for each in directions)
    return [BilingualCorpus(tuple(files), each) for each in pairs]


def _read(memory: Database, file: str, languages: Direction, direction: Direction) -> None:
    """Read a file unless the memory holds it as it is now."""
    state = Path(file).stat()
    stamp = f"{state.st_size} {state.st_mtime_ns}"
    pairs = usable(read_pairs([file], languages))
    is_reversed = direction != languages
    memory.read_file(str(Path(file).resolve()), stamp, _units(pairs, is_reversed), str(direction))


def _units(pairs: Iterable[Pair], is_reversed: bool) -> Iterator[Unit]:
    for source, target, (file, line), *_ in pairs:
        texts = (target, source) if is_reversed else (source, target)
        yield Unit(*texts, f"{Path(file).name}:{line}")

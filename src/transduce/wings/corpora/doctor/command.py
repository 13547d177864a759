"""`transduce doctor`."""

import dataclasses
import json as json_format
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from transduce.commands.output import print_table
from transduce.commands.recipes import Files, FromCode, ToCode
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST
from transduce.wings.corpora.doctor import corpus_command

if TYPE_CHECKING:
    from transduce.wings.corpora.doctor.fact import Fact

Names = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]


def doctor(
    *what: str,
    source: FromCode = "",
    target: ToCode = "",
    test: Files = (),
    vocabulary: Path | None = None,
    only: Names = (),
    without: Names = (),
    out: Path | None = None,
    json: bool = False,
    fix: Files = (),
    threads: int = 0,
) -> None:
    """Say what this machine, a model folder or a corpus lacks, and what mends it.

    Without an argument it looks at the machine; at a model folder or an export, every file of which is compared with
    the manifest; or at a corpus, which is read once. The exit status is 1 if a folder is damaged.

    Args:
        what: A model folder, an export, or what prepare wrote; or a corpus: two line-aligned text files, or
            bilingual files or a folder of them, as for --train.
        source: Language code of the source, such as en; found out from the text if it isn't given, but for a .tmx.
        target: Language code of the target, such as de; likewise.
        test: A test set, none of whose sentences should be in the corpus.
        vocabulary: A model folder, whose vocabulary should cover the corpus.
        only: The rules that are looked at; without it all of them.
        without: Rules that are not looked at.
        out: Also write a page with everything that was found, .html.
        json: Print a JSON object, for programs.
        fix: Write the corpus without the pairs at fault: as many files as it has, in the same form. What leaves stands
            in FILE.left-out.jsonl, with its rule.
        threads: Processes that look at a corpus; 0 is one for every core.
    """
    options = corpus_command.Options((source, target), test, vocabulary, only, without, out, json, fix, threads)
    if _is_corpus(what):
        corpus_command.check_corpus(what, options)
        return
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name != "json" and value != field.default:
            name = "from" if field.name == "languages" else field.name
            raise UserError(f"--{name} is about a corpus; name its files.")
    from transduce.wings.corpora.doctor.folder import folder_facts  # numpy: too slow for --help
    from transduce.wings.corpora.doctor.machine import machine_facts

    facts = list(folder_facts(Path(what[0])) if what else machine_facts(Path.cwd()))
    if json:
        print(json_format.dumps([fact._asdict() for fact in facts], ensure_ascii=False, indent=1))
    else:
        _print(facts)
    if any(fact.state == "damaged" for fact in facts):
        raise SystemExit(1)


def _is_corpus(what: tuple[str, ...]) -> bool:
    """Whether it is files, or a folder with bilingual ones, and none that transduce wrote."""
    from transduce import model_folder
    from transduce.text.formats import combinable_suffixes
    from transduce.text.plain import suffixes

    if len(what) != 1 or not (folder := Path(what[0])).is_dir():
        return bool(what)
    ours = any((folder / name).exists() for name in (model_folder.CONFIG, MANIFEST))
    return not ours and any(suffixes(path.name)[0] in combinable_suffixes() for path in folder.rglob("[!.]*"))


def _print(facts: Iterable["Fact"]) -> None:
    signs = {"good": "  ", "lacking": "- ", "damaged": "! "}
    rows = []
    for fact in facts:
        rows.append((signs[fact.state] + fact.what, fact.says))
        if fact.mend:
            rows.append(("", f"→ {fact.mend}"))
    print_table(rows)

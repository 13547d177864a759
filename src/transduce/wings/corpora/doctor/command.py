"""`transduce doctor`."""

import json as json_format
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from transduce.commands.recipes import Files, FromCode, ToCode
from transduce.system.console import print_table
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST
from transduce.wings.corpora.doctor.machine import Fact, machine_facts

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
    """Check a machine, model or corpus and suggest fixes.

    Without an argument, the doctor checks this machine. In a folder that transduce wrote, the doctor compares every
    file with the manifest, and exits with status 1 if a file is damaged. In a corpus, the doctor finds faulty pairs.

    Args:
        what: What to check: a model folder, an export, a prepared corpus, two line-aligned text files, bilingual files
            or a folder of bilingual files.
        source: Language code of the source, such as en; by default read from the text, but needed for .tmx and .jsonl.
        target: Language code of the target, such as de; by default read from the text, but needed for .tmx and .jsonl.
        test: A test set; the doctor reports the sentences of the corpus that are also in the test set.
        vocabulary: A model folder; the doctor reports the characters of the corpus that the model's vocabulary lacks.
        only: Names of the rules to check; breaking one of them counts as a fault. The rules `empty`, `line-break` and
            `encoding` are always checked, and can't be named.
        without: Names of rules to skip; the doctor checks all other rules.
        out: Also write a report of the corpus to this .html file.
        json: Print the findings as JSON.
        fix: Write the corpus without its faulty pairs to these files; suspicious pairs are kept. Give files in the
            format of the corpus, or one .jsonl file. The removed pairs and the rules that they broke are written to
            FILE.left-out.jsonl.
        threads: Number of worker processes for a corpus; 0 means one per core.
    """
    if _is_corpus(what):
        from transduce.text.pairs import are_trees
        from transduce.text.rules import SUSPICIONS

        # Imports numpy: too slow for --help.
        from transduce.wings.corpora.doctor.corpus_command import (
            check_corpus,
            choose_rules,
        )

        if are_trees(what):
            raise UserError(
                f"{' '.join(what)} holds trees, and the doctor checks translations.",
                "`transduce prepare` with a recipe for parsers names malformed trees and counts repeated ones.",
            )
        rules = choose_rules((source, target), test, only, without)
        suspicions = {*SUSPICIONS} - {*only}
        check_corpus(
            what,
            rules,
            suspicions,
            vocabulary=vocabulary,
            out=out,
            json=json,
            fix=fix,
            threads=threads,
        )
        return
    for_corpus: dict[str, object] = {
        "from": source,
        "to": target,
        "test": test,
        "vocabulary": vocabulary,
        "only": only,
    }
    for_corpus |= {"without": without, "out": out, "fix": fix, "threads": threads}
    if option := next((name for name, value in for_corpus.items() if value), ""):
        raise UserError(f"--{option} needs a corpus.", "Name the files of the corpus.")
    from transduce.wings.corpora.doctor.folder import folder_facts

    facts = list(folder_facts(Path(what[0])) if what else machine_facts(Path.cwd()))
    if json:
        print(json_format.dumps([fact._asdict() for fact in facts], ensure_ascii=False, indent=1))
    else:
        _print(facts)
    if any(fact.state == "damaged" for fact in facts):
        raise SystemExit(1)


def _is_corpus(what: tuple[str, ...]) -> bool:
    """Whether `what` names a corpus. False for a folder that transduce wrote."""
    from transduce import model_folder
    from transduce.text.formats import bilingual_suffixes
    from transduce.text.plain import suffixes

    if len(what) != 1 or not (folder := Path(what[0])).is_dir():
        return bool(what)
    ours = any((folder / name).exists() for name in (model_folder.CONFIG, MANIFEST))
    return not ours and any(
        suffixes(path.name)[0] in bilingual_suffixes() for path in folder.rglob("[!.]*")
    )


def _print(facts: Iterable[Fact]) -> None:
    signs = {"good": "  ", "lacking": "- ", "damaged": "! "}
    rows = []
    for fact in facts:
        rows.append((signs[fact.state] + fact.what, fact.says))
        if fact.mend:
            rows.append(("", f"→ {fact.mend}"))
    print_table(rows)

"""`transduce import`."""

import time
from pathlib import Path

from transduce.commands.recipes import Files, FromCode, ToCode, pairs_in
from transduce.system.errors import UserError


def import_model(
    folder: Path,
    /,
    *,
    out: Path,
    source: FromCode = "",
    target: ToCode = "",
    valid: Files = (),
) -> None:
    """Make a model folder of a Marian or OPUS-MT model in Hugging Face's form, if it translates as the original does.

    It can be translated with, trained further (`transduce train --init`) and exported. Where transformers is installed,
    it and the original translate the same sentences, and the same tokens have to come out.

    Args:
        folder: The folder with config.json, model.safetensors, source.spm, target.spm and vocab.json.
        out: The model folder to write.
        source: Language code of the source; what the folder says, unless given.
        target: Language code of the target; what the folder says, unless given.
        valid: Sentences to compare on, with translations: two text files or one bilingual file; by default the
            phrasebook's, which are English, or German for a model that translates from German.
    """
    from transduce.wings.export.importing import import_model as run  # torch: too slow for --help

    began = time.monotonic()
    if out.exists():
        raise UserError(f"{out} exists already and is never overwritten; give another folder with --out.")
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}.")
    imported = run(folder, out, source, target, pairs_in(valid, source or "src", target or "tgt"))
    for line in imported.proof.report() if imported.proof else ["Not compared: pip install 'transduce[export]' first."]:
        print(line)
    print(f"{out}: {imported.parameters:,} parameters, in {time.monotonic() - began:.0f} s")

"""`transduce import`."""

import time
from pathlib import Path

from transduce.commands.recipes import Files, FromCode, ToCode, pairs_in
from transduce.config.schema import DataConfig
from transduce.system.errors import UserError
from transduce.text.plain import read_lines

NOT_COMPARED = (
    "Not compared with the original, since its program (transformers or pymarian) is not installed."
)


def import_model(
    folder: Path,
    /,
    *,
    out: Path,
    source: FromCode = "",
    target: ToCode = "",
    valid: Files = (),
    trim: int = 0,
    texts: Files = (),
) -> None:
    """Convert a model of another program to a model folder: OPUS-MT, M2M-100, NLLB-200, SMaLL-100 or mBART-50.

    The new model can translate, be fine-tuned (`transduce train --init`) and be exported. If transformers is installed,
    both models translate the same sentences, as a check. If the translations differ too much, nothing is written.

    Args:
        folder: The folder with all files of the model, in Hugging Face's format or in Marian's own.
        out: The model folder to write.
        source: Language codes of sources, separated by commas; by default the code in FOLDER.
        target: Language codes of targets, separated by commas; by default the code in FOLDER.
        valid: Text to translate for the comparison: two text files or one bilingual file. By default short German
            sentences if the model translates from German, otherwise short English sentences.
        trim: Keep about this many pieces of a multilingual model's vocabulary, such as 40000: the model becomes smaller
            and faster. The text files of `texts`, and of `valid`, decide which.
        texts: Plain text files in all chosen languages, by which pieces are kept.
    """
    # Imports torch: too slow for --help.
    from transduce import model_folder
    from transduce.training.facts import licence
    from transduce.wings.pretrained.importing import import_model as run

    began = time.monotonic()
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a folder.",
            "Name the folder that holds config.json and the weights.",
        )
    named = DataConfig(source=source or "src", target=target or "tgt")
    lines = [line for file in texts for line in read_lines(file)]
    imported = run(folder, out, source, target, pairs_in(valid, named), trim=trim, texts=lines)
    for line in imported.parity.report() if imported.parity else [NOT_COMPARED]:
        print(line)
    for fact in licence(model_folder.read_config(out)):
        print(f"Licence: {fact.text}")
    if imported.positions:
        print(imported.positions)
    print(f"{out}: {imported.parameters:,} parameters, in {time.monotonic() - began:.0f} s")

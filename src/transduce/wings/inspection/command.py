"""`transduce attention`."""

from pathlib import Path
from typing import Literal

from transduce.commands.options import Assignments, search_options
from transduce.commands.recipes import FromCode, ToCode
from transduce.config.families import TEXT_SOURCES
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.text.plain import STANDARD_OUTPUT, check_output, write_lines

PICTURES = (".svg", ".pdf", ".png")


def _is_page(out: Path, *, chooses_maps: bool) -> bool:
    """Whether the output is a page, not a picture. Raises UserError if the options don't fit the name `out`."""
    is_page = out == STANDARD_OUTPUT or out.suffix in (".html", ".htm")
    if is_page and chooses_maps:
        raise UserError(
            "--use, --layer, --head and --mean are for pictures. A page shows all maps.",
            "Leave them out, or draw a picture: --out FILE.svg.",
        )
    if not is_page and out.suffix not in PICTURES:
        raise UserError(
            f"--out {out}: unknown format.",
            "Use a name that ends in .html, .svg, .pdf or .png.",
        )
    return is_page


def attention(
    model: Path,
    sentence: str,
    /,
    *,
    out: Path = Path("attention.html"),
    source: FromCode = "",
    target: ToCode = "",
    beam_size: int | None = None,
    length_penalty: float | None = None,
    use: Literal["source", "encoder", "decoder"] = "source",
    layer: int = 0,
    head: int = 0,
    mean: bool = False,
    assignments: Assignments = (),
) -> None:
    """Show how a model translates a sentence: the attention of every layer and head, and the beam search.

    The output is a self-contained HTML page, or a picture of the attention maps.

    Args:
        model: A model folder.
        sentence: The sentence to translate.
        out: The file to write: a page (.html) or a picture (.svg, .pdf or .png).
        source: The language code of the sentence, for multilingual models.
        target: The language code of the translation, for multilingual models.
        beam_size: Number of hypotheses that the search keeps; 1: greedy search.
        length_penalty: Alpha of the length penalty; a larger alpha favours longer translations.
        use: Attention to draw in a picture: source is cross-attention; encoder and decoder are self-attention.
        layer: The layer to draw in a picture, counted from 1; 0 draws all layers.
        head: The head to draw in a picture, counted from 1; 0 draws all heads.
        mean: Draw one attention map: the mean over the layers and heads that --layer and --head select.
    """
    options = search_options(assignments, beam_size, length_penalty)
    check_output(out, [], "out")
    is_page = _is_page(out, chooses_maps=use != "source" or bool(layer or head or mean))
    from transduce.decoding.directions import choose_direction, directions_of

    # Imports torch: too slow for --help.
    from transduce.decoding.loading import (
        decode_config,
        load_models,
        refuse_parser,
    )
    from transduce.wings.inspection.maps import attention_of
    from transduce.wings.inspection.page import picture_page
    from transduce.wings.inspection.picture import picture_of

    (loaded,) = load_models([model])
    refuse_parser(loaded.tokenizer, loaded.folder)
    if loaded.tokenizer.source_kind != TEXT_SOURCES:
        raise UserError(
            f"{model}: the sources of the model are files, and `attention` shows sentences.",
            "benchmarks/scenes.py in the repository draws where the words of a caption look.",
        )
    data = loaded.config.data
    config = decode_config(loaded.config, options)
    direction = choose_direction(directions_of(data), source, target)
    tokenizer = loaded.tokenizer.toward(str(direction) if data.directions else "")
    recorded = attention_of(loaded.model, tokenizer, sentence, config, direction.source)
    if is_page:
        write_lines(out, [picture_page(picture_of(loaded.model, recorded))])
    elif use not in recorded.uses:
        raise UserError(
            f"This kind of model has no self-attention in its {use}.", "Leave out --use."
        )
    else:
        from transduce.wings.inspection.plots import USE_TITLES, draw_attention, pick  # matplotlib

        maps = pick(recorded.uses[use], layer, head, mean=mean)
        draw_attention(out, recorded.uses[use], f"{USE_TITLES[use]}: {sentence}", maps)
    log(f"{recorded.translation.text}  (score {recorded.translation.score:.3f})")
    if out != STANDARD_OUTPUT:
        log(f"Written: {out}")

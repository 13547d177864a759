"""A translator from model folders."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import DecodeConfig, RunConfig, flatten
from transduce.decoding.engines.ct2.cache import fast_engine, refusal
from transduce.decoding.engines.ct2.engine import has_gpu
from transduce.decoding.engines.engine import Choice, Engine
from transduce.decoding.engines.support import ENCODER
from transduce.decoding.translator import Translator, shared_tokenizer
from transduce.system.errors import UserError
from transduce.system.files import verify
from transduce.system.journal import say
from transduce.system.machine import cores, keep_memory
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.paper.trees import are_of_trees

if TYPE_CHECKING:
    import torch

    from transduce.model.seq2seq import Seq2Seq


def load(
    folders: Path | str | Sequence[Path | str],
    options: Mapping[str, Any] | None = None,
    *,
    engine: Choice = "auto",
    device: "torch.device | str | None" = None,
    threads: int = 0,
) -> Translator:
    """The model of a folder, or the ensemble of several, ready to translate.

    options: decode.* options by dotted name over those that the first model was trained with. engine: "torch", our own
    search, is for every model and device; "int8" is the same with matrix products in 8 bits, for every model on a CPU;
    "ctranslate2" is faster, for Transformers on a CPU; "auto" is that where it is installed, knows the model and
    translates it as well, otherwise "torch". device: by default the GPU if there is one. threads: of the CPU, 0: one
    for each core, or what torch chooses.
    Raises UserError that names what is missing, damaged, of a newer format, a parser, has another vocabulary, or can't
    have the engine.
    """
    paths = [Path(folder) for folder in ([folders] if isinstance(folders, (str, Path)) else folders)]
    if not paths:
        raise UserError("There is no model to load: give the folder of one, or of several for an ensemble.")
    if engine == "int8" and device is not None and str(device) != "cpu":
        raise UserError(f"The engine int8 is for CPUs, not for {device}: leave out the one or the other.")
    if exported := [path for path in paths if (path / ENCODER).exists()]:
        if len(paths) > 1 or engine != "auto":
            raise UserError(
                f"{exported[0]} holds ONNX graphs, which have an engine of their own and no ensemble: leave out "
                "--engine, and give it alone."
            )
        return _exported(paths[0], options or {}, threads or cores())
    config = model_folder.describe(paths[0]).config
    decode = decode_config(config, options or {})
    if engine in ("auto", "ctranslate2"):
        found = _fast(paths, config, decode, device, threads or cores(), asked=engine == "ctranslate2")
        if isinstance(found, Translator):
            return found
        if engine == "ctranslate2":
            raise UserError(f"{paths[0]} can't have the engine ctranslate2: {found}.")
    if decode.shortlist:
        say("decode.shortlist is for the fast engine; our own search chooses from all pieces.")
    from transduce.decoding.engines.attention import alignment_layer
    from transduce.decoding.engines.torch import TorchEngine

    models = load_models(paths, device="cpu" if engine == "int8" else device, threads=threads)
    for model in models:
        refuse_parser(model.tokenizer, model.folder)
    tokenizer = shared_tokenizer([model.tokenizer for model in models], list(map(str, paths)))

    def layers() -> list[int]:
        return [alignment_layer(model) for model in models]

    if engine == "int8":
        return Translator(TorchEngine(_in_8_bits(models), name="torch, int8", layers=layers), tokenizer, decode)
    return Translator(TorchEngine([model.model for model in models], layers=layers), tokenizer, decode)


def _exported(folder: Path, options: Mapping[str, Any], threads: int) -> Translator:
    """What `transduce export --to onnx` wrote."""
    from transduce.wings.export.onnx_engine import OnnxEngine

    verify(folder, but=model_folder.CARD)
    config = model_folder.read_config(folder)
    tokenizer = Tokenizer.load(folder, threads)
    return Translator(OnnxEngine(folder, config.model, threads), tokenizer, decode_config(config, options))


def _in_8_bits(models: Sequence[model_folder.Bundle]) -> "list[Seq2Seq]":
    from transduce.decoding.engines.int8 import is_faster, quantise

    if not is_faster():
        raise UserError("This processor is no faster with 8 bits than with 32: leave out --engine int8.")
    return [quantise(model.model) for model in models]


def load_models(
    folders: Sequence[Path | str], *, device: "torch.device | str | None" = None, threads: int = 0
) -> list[model_folder.Bundle]:
    """The models of several folders, on one device; arguments and what is raised as for `load`."""
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    keep_memory()
    if threads:
        torch.set_num_threads(threads)
    return [model_folder.load(folder, device, torch.get_num_threads()) for folder in folders]


def _fast(
    paths: Sequence[Path],
    config: RunConfig,
    decode: DecodeConfig,
    device: "torch.device | str | None",
    threads: int,
    *,
    asked: bool,
) -> Translator | str:
    """With the fast engine, or why there is none; what goes wrong in making it keeps no model from translating."""
    if len(paths) > 1:
        return "it is for one model, not an ensemble"
    if why := refusal(config, paths[0]):
        return why
    if device is not None and str(device) != "cpu":
        return "it is for CPUs here"
    tokenizer = Tokenizer.load(paths[0], threads)
    refuse_parser(tokenizer, paths[0])
    try:
        if device is None and not asked and has_gpu():
            return "our own search uses the GPU"
        config = replace(config, decode=replace(config.decode, shortlist=decode.shortlist))
        found = fast_engine(paths[0], config, threads, keep=not asked)
    except (ImportError, LookupError, OSError, RuntimeError, UserError, ValueError) as error:
        why = f"it can't be made: {str(error).rstrip('.')}"
        if not asked:
            say(f"There is no fast engine, {why}")
        return why
    if found is None:
        return "what it translates is worse than what our own search finds"

    def own() -> Engine:
        from transduce.decoding.engines.torch import TorchEngine

        return TorchEngine([model.model for model in load_models(paths, device="cpu", threads=threads)])

    return Translator(found, tokenizer, decode, own)


def refuse_parser(tokenizer: Tokenizer, folder: Path) -> None:
    """Raise UserError for a model that was trained on trees: what it translates words to would be noise."""
    if are_of_trees(tokenizer.target_symbols().values()):
        raise UserError(f"{folder} was trained on trees: give it to `transduce parse`, or to `evaluate` with a .mrg.")


def decode_config(config: RunConfig, options: Mapping[str, Any]) -> DecodeConfig:
    """How to search: the given options over those of the training.

    Raises UserError for an option of anything else, which a finished model would pass over in silence.
    """
    for name in options:
        if name.startswith(("model.", "data.", "train.")):
            raise UserError(f"{name} can't be set for a model that is trained; only the options decode.… can.")
    return configure(flatten(config), options).decode

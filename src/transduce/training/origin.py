"""The model that a training continues from: the options inherited from it, what must fit it, and its weights."""

from pathlib import Path
from unicodedata import normalize

import torch

from transduce import model_folder
from transduce.config.parse import configure
from transduce.config.schema import UNK, differences, flatten
from transduce.config.settings import FROM_SIZES, MODEL, Settings
from transduce.decoding.directions import directions_of
from transduce.model.seq2seq import Seq2Seq
from transduce.preparation.passes import check_vocabulary
from transduce.preparation.prepared import is_prepared
from transduce.system.errors import UserError
from transduce.tokens.imported_vocabulary import language_of
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.run_card import asked_vocabulary_size
from transduce.training.schedule import check_risk

# Options that are fixed once the vocabulary is learned.
VOCABULARY_OPTIONS = (
    "data.tokenizer",
    "data.joint",
    "data.symbols",
)
INHERITED = (  # options taken from the model to continue from, unless the user chooses others
    "model.",
    "decode.",
    "data.source",
    "data.target",
    "data.directions",
    "data.bleu_tokenize",
    "data.placeholders",
    "data.licence",
    *VOCABULARY_OPTIONS,
)


def with_origin(
    settings: Settings, init: Path | None, keep_optimizer: bool
) -> tuple[Settings, model_folder.Bundle | None]:
    """Add the settings of the model to continue from; also returns this model. Raises UserError for conflicts."""
    data = settings.config().data
    may_validate = bool(
        data.valid or data.holdout or any(is_prepared(corpus.files) for corpus in data.corpora)
    )
    check_risk(settings.config().train, init, may_validate)
    if settings.get("train.low_rank"):
        excluded = "train.ema", "train.shard", "data.replay"
        if not init or keep_optimizer or any(map(settings.get, excluded)):
            raise UserError(
                "Low-rank updates fine-tune a model: without a new language, an old optimizer state, train.ema and "
                "train.shard.",
                "Leave train.low_rank out, or change these options.",
            )
        settings = settings.under(FROM_SIZES, {"train.ema": 0.0})
    if not init:
        if keep_optimizer:
            raise UserError(
                "An optimizer state needs a model to continue from.",
                "Name this model, too.",
                "init",
            )
        return settings, None
    origin = model_folder.load(init)
    check_origin(origin, settings, keep_optimizer)
    values = {
        name: value for name, value in flatten(origin.config).items() if name.startswith(INHERITED)
    }
    settings = settings.under(MODEL, values)
    risk = settings.get("train.risk_steps")
    if risk and not settings.get("data.replay"):  # minimum-risk training alone
        settings = settings.under(FROM_SIZES, {"train.steps": risk})
    return settings, origin


def check_origin(origin: model_folder.Bundle, settings: Settings, keep_optimizer: bool) -> None:
    """Raise UserError if `settings` conflict with the vocabulary, shape or optimizer state of the model `origin`."""
    if keep_optimizer and settings.get("data.replay"):
        raise UserError(
            "A model with a new language needs a new optimizer state.",
            "Leave the old one out.",
            "keep_optimizer",
        )
    if keep_optimizer and not model_folder.checkpoints(origin.folder):
        raise UserError(
            f"{origin.folder} has no checkpoints, so its optimizer state is gone.",
            "Train with a new optimizer.",
            "keep_optimizer",
        )
    if keep_optimizer:
        model_folder.check_trainable(origin.folder)
    if not settings.get("data.replay"):  # data.replay adds tokens
        asked = asked_vocabulary_size(origin.folder)
        check_vocabulary(settings, origin.tokenizer.source.size, origin.folder, asked)
    for name, (was, now) in differences(
        origin.config, configure(flatten(origin.config), settings)
    ).items():
        is_shape = name.startswith("model.") and name not in (
            "model.dropout",
            "model.attention_dropout",
        )
        if is_shape or name in VOCABULARY_OPTIONS:
            raise UserError(
                f"{origin.folder} has {name} = {was}, which can't change to {now}.",
                f"Leave {name} out.",
            )


@torch.no_grad()
def extended(
    origin: model_folder.Bundle, tokenizer: Tokenizer, model: Seq2Seq, like: str = ""
) -> dict[str, torch.Tensor]:
    """The weights of `origin`, with a row for each token that its vocabulary lacks, as in the new `model`.

    The row is the mean of the rows of the tokens that spell the new token. For the tag of a new language, this is the
    tag of the language `like`; for any other tag, and without `like`, these are all older tags. A character that the
    old vocabulary can't spell counts as its base letter, as r for ř, or else not; a token of such characters begins as
    the mean of all tokens.
    """
    weights = origin.model.state_dict()
    old = origin.tokenizer.target
    new = tokenizer.target
    everything = list(range(old.size))
    old_tags = list(old.tags.values()) or everything
    like_tag = [old.tags[origin.tokenizer.tag_of(like)]] if like else old_tags
    known = {code for direction in directions_of(origin.config.data) for code in direction}
    pieces = new.pieces(range(old.size, new.size))
    characters = {*"".join(pieces)}
    bases = {ord(each): normalize("NFD", each)[0] for each in characters - old.known(characters)}
    with_bases = old.spell([piece.translate(bases) for piece in pieces])
    spelt = []
    for piece, exact, approximate in zip(pieces, old.spell(pieces), with_bases, strict=True):
        ids = [token for token in approximate if token != UNK] if UNK in exact else exact
        if piece in new.tags:
            ids = old_tags if language_of(piece) in known else like_tag
        spelt.append(ids or everything)
    for name, weight in model.state_dict().items():
        if weight.shape != weights[name].shape:
            rows = torch.stack([weights[name][tokens].mean(0) for tokens in spelt])
            weights[name] = torch.cat([weights[name], rows])
    return weights

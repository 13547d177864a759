"""Exports a folder that any web server can serve: a page that translates in the browser, with its model.

The folder is also an ONNX export whose matrices are stored in 8 bits, so `transduce translate` runs the same model.
"""

import json
from base64 import b64encode
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from transduce.config.schema import PLACEHOLDER_TOKENS, DataConfig, RunConfig
from transduce.decoding.alignment_layer import alignment_layer
from transduce.decoding.directions import directions_of
from transduce.inline.full_stops import kinds_of_words
from transduce.model_folder import Bundle
from transduce.text.languages import language_name, main_language
from transduce.tokens.normalization import FOLDED
from transduce.tokens.vocabulary import Vocabulary
from transduce.training.card import translate_command
from transduce.wings.export import onnx
from transduce.wings.export.onnx_engine import DECODER, ENCODER
from transduce.wings.export.parity import Runner
from transduce.wings.export.readme import fill
from transduce.wings.export.runtime import RUNTIME_FILES
from transduce.wings.formats import max_positions

PATTERNS = "patterns.json"  # regular expressions in JavaScript's syntax
SITE = "site.json"  # what the page reads of the model, beside the graphs
SHARED = (
    "page.css",
    "clipboard.js",
    "device.js",
    "elements.js",
    "messages.js",
)  # with the page of `transduce serve`
SERVICE_WORKER = "service-worker.js"
# In the service worker, they stand for the hash of each file, and for the hash of all of them.
FILES_HERE, VERSION_HERE = "{/* FILES */}", "/* VERSION */"
NO_JEKYLL = ".nojekyll"  # has GitHub Pages serve the files as they are


def usage(model: Bundle) -> str:
    """The Markdown text that explains how to serve the folder."""
    return fill("web", command=translate_command(model.config))


def write(model: Bundle, folder: Path, compute_type: str) -> None:
    """Write the model and the page into a folder that has the runtime."""
    data = model.config.data
    # The names of the training's files are private.
    kept = ("source", "target", "directions", "joint", "placeholders", "max_length")
    public = DataConfig(**{name: getattr(data, name) for name in kept})
    config = RunConfig(model=model.config.model, data=public, decode=model.config.decode)
    public_model = model._replace(config=config)
    onnx.write(public_model, folder, compute_type, alignment_layer=alignment_layer(model))
    content = json.dumps(site(model), ensure_ascii=False, separators=(",", ":"))
    (folder / SITE).write_bytes(content.encode())
    page = [each for each in files(__package__).joinpath("site").iterdir() if each.is_file()]
    shared = [files("transduce.wings.serving").joinpath("page", name) for name in SHARED]
    for file in (*page, *shared):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / NO_JEKYLL).touch()
    cached = [*(file.name for file in (*page, *shared)), *RUNTIME_FILES, ENCODER, DECODER, SITE]
    hashes = {name: _hash(folder / name) for name in sorted(cached) if name != SERVICE_WORKER}
    listed = json.dumps(hashes, indent=2)
    worker = folder / SERVICE_WORKER
    text = worker.read_bytes().decode().replace(FILES_HERE, listed)
    version = sha256(listed.encode()).hexdigest()
    worker.write_bytes(text.replace(VERSION_HERE, version).encode())


def open_runner(folder: Path) -> Runner:
    """Open an exported folder for greedy translation by ONNX Runtime in Python and our own search."""
    return onnx.open_runner(folder)._replace(compute_type="8-bit weights")


def site(model: Bundle) -> dict[str, Any]:
    """What the page reads from site.json: languages, vocabularies, normalisation and options of the search."""
    tokenizer = model.tokenizer
    decode = model.config.decode
    directions = list(_directions(model))
    positions = max_positions(model.config.model) - 1  # one is for EOS or BOS
    return {
        **rules(tokenizer.normalizer.keep, [each["source"] for each in directions]),
        "directions": directions,
        "source": vocabulary(tokenizer.source),
        "target": None if tokenizer.joint else vocabulary(tokenizer.target),
        "placeholderTokens": PLACEHOLDER_TOKENS if tokenizer.has_placeholder_tokens else "",
        "maxTokens": positions,
        "maxSentenceTokens": min(model.config.data.max_length or positions, positions),
        "beamSize": decode.beam_size,
        "lengthPenalty": decode.length_penalty,
        "maxExtraTokens": decode.max_extra_tokens,
        "noRepeat": decode.no_repeat_ngram,
        "retryLoops": decode.retry_loops,
        "capitals": decode.capitals,
    }


def rules(keep: Collection[str], languages: Sequence[str]) -> dict[str, Any]:
    """The rules of normalisation, full stops and placeholders. tools/write_patterns.py writes their patterns.

    `keep` are the characters that sources keep as they are, and `languages` those of the sources.
    """
    found: dict[str, Any] = json.loads(files(__package__).joinpath(PATTERNS).read_bytes())
    folded = {each: form for each, form in FOLDED.items() if each not in keep}
    found["normalizer"]["folded"] = folded
    found["fullStops"]["kinds"] = {each: kinds_of_words(main_language(each)) for each in languages}
    return found


def vocabulary(side: Vocabulary) -> dict[str, Any]:
    """A vocabulary as tokenizer.mjs reads it."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

    pieces = ModelProto.FromString(side.model).pieces
    return {
        "kind": side.kind,
        "pieces": [each.piece for each in pieces],
        "scores": [each.score for each in pieces],
        "types": [each.type for each in pieces],
    }


def _directions(model: Bundle) -> Iterator[dict[str, Any]]:
    for each in directions_of(model.config.data):
        name = str(each) if model.config.data.directions else ""
        yield {
            "source": each.source,
            "target": each.target,
            "sourceName": language_name(each.source),
            "targetName": language_name(each.target),
            "tags": model.tokenizer.toward(name).tags,
        }


def _hash(file: Path) -> str:
    """The hash of a file, as browsers check it."""
    return f"sha256-{b64encode(sha256(file.read_bytes()).digest()).decode()}"

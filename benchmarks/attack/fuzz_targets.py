"""The readers that `fuzz.py` attacks. Each target is a function of bytes.

A target may raise UserError. Any other exception is a defect: `BrokenError` if a round trip loses text or a document.
"""

import contextlib
import io
import itertools
import json
import re
import shutil
import socket
import tempfile
import threading
import zipfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import cast
from unittest.mock import patch

import numpy as np
from toy import TINY, command, write_corpus

from transduce import model_folder
from transduce.augmentation.subwords import SubwordSampler
from transduce.config.parse import configure, parse_assignments, read_recipe, to_toml
from transduce.decoding.confidence import Confidence
from transduce.decoding.loading import load
from transduce.decoding.plan import Plan
from transduce.decoding.types import Term, Translation
from transduce.inline.events import NO_BLANK
from transduce.inline.placeholder_removal import is_text
from transduce.inline.placeholder_tokens import with_shared_tokens, with_tokens
from transduce.inline.placeholders import Masked, cut, mask, original
from transduce.inline.segments import BULLET, shorten, split, whole_words
from transduce.preparation.prepared import read_facts
from transduce.system.errors import UserError
from transduce.system.files import verify
from transduce.system.journal import Journal, read_events
from transduce.text import jsonl
from transduce.text.formats import CorpusFile, TextKind, read_document
from transduce.text.pairs import Origin, Pair, read_pairs
from transduce.tokens.tokenizer import PIECES, Tokenizer
from transduce.wings.cluster import shards, translating
from transduce.wings.corpora.doctor.repair import with_target
from transduce.wings.corpora.fetch import archive, opus
from transduce.wings.corpora.fetch.table import choose, find, read_table
from transduce.wings.export import huggingface, marian
from transduce.wings.pretrained import huggingface_reader
from transduce.wings.serving import network
from transduce.wings.serving.api import application
from transduce.wings.serving.keys import Keys
from transduce.wings.serving.limits import Limits, limits_from
from transduce.wings.serving.models import Model
from transduce.wings.serving.payload import Asked, Detection, Texts, check_limits, parse, validate
from transduce.wings.serving.prompts import find_language, read_batch, read_prompt
from transduce.wings.serving.store import ModelStore
from transduce.wings.synthetic.translations import Translate, begin
from transduce.wings.synthetic.translations import translated as translated_pairs
from transduce.wings.terms.glossary import Glossary, contains, read_glossary, segment
from transduce_lab.comparing import definition
from transduce_lab.parsing.brackets import compare
from transduce_lab.parsing.evalb import read_parameters
from transduce_lab.parsing.trees import (
    MalformedTreeError,
    delinearise,
    linearise,
    parse_trees,
    simplify,
)

SEPARATOR = b"\n=====\n"  # between the parts of an input
LANGUAGES = "en", "de"
SECONDS = 60.0  # a server that is silent for so long hangs
TEMPORARY = tempfile.TemporaryDirectory(prefix="fuzz-")
PLACE = Path(TEMPORARY.name)  # of the targets' files


class BrokenError(Exception):
    """A law that a target breaks."""


def expect(is_true: bool, law: str) -> None:
    if not is_true:
        raise BrokenError(law)


def parts(data: bytes, count: int) -> list[bytes]:
    """Exactly `count` parts of an input; missing parts are empty."""
    return (data.split(SEPARATOR, count - 1) + [b""] * count)[:count]


def as_text(data: bytes) -> str:
    """A text in which bytes that are not UTF-8 are lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def file(name: str, data: bytes) -> Path:
    path = PLACE / name
    path.write_bytes(data)
    return path


def corpus(data: bytes, *names: str) -> None:
    """Read a corpus strictly and leniently. What is read strictly is Unicode, and is the same if read leniently."""
    files = [
        str(file(name, part)) for name, part in zip(names, parts(data, len(names)), strict=True)
    ]
    strict = None
    with contextlib.suppress(UserError):
        strict = list(read_pairs(files, LANGUAGES))
        for source, target, *_ in strict:
            f"{source}{target}".encode()
    lenient = list(read_pairs(files, LANGUAGES, lenient=True))
    expect(strict in (None, lenient), "a lenient reader changes texts")
    for pair in strict or ():
        with_shared_tokens(pair.source, pair.target)


# Documents that hold texts and their translations.
WITH_TRANSLATIONS = ("po", "xlf", "tmx", "csv", "xcstrings")


def document(data: bytes, name: str) -> None:
    """Untranslated documents stay the same bytes. A translated document can be read, and has as many texts."""
    for redo in (False, True)[not name.endswith(WITH_TRANSLATIONS) :]:
        found = read_document(data, name, *LANGUAGES, redo=redo)
        count = len(found.texts)
        expect(len(found.kinds) == len(found.lines) == count, "a text without a line")
        expect(
            max(found.lines, default=1) <= 1 + data.count(b"\n") + data.count(b"\r"),
            "a line too far",
        )
        expect(found.write([""] * count) == data, "an untranslated document changes")
        written = found.write(translated(found.texts, found.kinds, words_only=len(data) % 2 == 0))
    # Some files are then in the target language.
    is_target = written != data and name.endswith(("yml", "arb"))
    languages = (LANGUAGES[1], LANGUAGES[1]) if is_target else LANGUAGES
    try:
        again = read_document(written, name, *languages, redo=True)
    except UserError as error:
        raise BrokenError(f"a translated document can't be read: {error}") from error
    # A tag that is never closed may move, and so may a brace of a damaged ICU message. A line of a
    # subtitle may become a timing.
    may_differ = name.endswith(("html", "sbv")) or re.search(rb"plural|select", data)
    is_same = len(again.texts) == count or may_differ
    expect(bool(is_same), f"a translated document has {len(again.texts)} texts instead of {count}")


def office(data: bytes, name: str, member: str, *others: str) -> None:
    """An archive with a member. The archive stays the same bytes; with translations, it can be read again."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for each in others:
            packed.writestr(each, "<x/>")
        packed.writestr(member, data)
    office_file(content.getvalue(), name)


def office_file(data: bytes, name: str) -> None:
    found = read_document(data, name, *LANGUAGES)
    expect(found.write([""] * len(found.texts)) == data, "an untranslated document changes")
    written = found.write(translated(found.texts, found.kinds, words_only=len(data) % 2 == 0))
    try:
        read_document(written, name, *LANGUAGES)
    except UserError as error:
        raise BrokenError(f"a translated document can't be read: {error}") from error


def translated(texts: Sequence[str], kinds: Sequence[TextKind], *, words_only: bool) -> list[str]:
    """The texts as an engine that exchanges capitals, or also drops placeholders, would translate them."""
    plan = Plan(
        texts,
        "en",
        kinds=kinds,
        lengths=lambda them: [len(text) // 3 for text in them],
        max_length=300,
    )
    dropped = re.compile(r"[^\w\s]" if words_only else "$^")
    said = (dropped.sub("", sentence) for sentence in plan.sentences)
    pairs = zip(said, plan.sentences, strict=True)
    translations = [
        Translation((text if text.strip() else other).swapcase(), 0.0, ()) for text, other in pairs
    ]
    return [each.text for each in plan.assemble(translations)]


def both(data: bytes, name: str) -> None:
    """Read a file as a document and as a corpus."""
    with contextlib.suppress(UserError):
        document(data, name)
    corpus(data, name)


# Suffixes of files with texts by keys.
KEYED = "xml", "strings", "json", "arb", "properties", "yml", "resx", "ftl"


def keyed(data: bytes, suffix: str) -> None:
    """Read a file as a document, and with itself as a corpus: each text is its own translation."""
    with contextlib.suppress(UserError):
        document(data, f"in.{suffix}")
    files = [str(file(f"{side}.{suffix}", data)) for side in ("source", "target")]
    for pair in read_pairs(files, LANGUAGES):
        expect(pair.source == pair.target, "a text is paired with another one")
        f"{pair.source}".encode()


def timed(data: bytes, suffix: str) -> None:
    """Read subtitles as a document and, with themselves, as a corpus."""
    with contextlib.suppress(UserError):
        document(data, f"in.{suffix}")
    corpus(SEPARATOR.join([data, data]), f"one.{suffix}", f"two.{suffix}")


def json_lines(data: bytes) -> None:
    path = str(file("in.jsonl", data))
    found = jsonl.read_jsonl(CorpusFile(path, LANGUAGES))
    for (source, *_), (_, text) in zip(found, jsonl.read_objects(path), strict=False):
        if line := text.replace("\n", " ").strip():
            other = file("out.jsonl", with_target(line, "ein Text", LANGUAGES).encode())
            pairs = list(jsonl.read_jsonl(CorpusFile(str(other), LANGUAGES)))
            expect(pairs == [(source, "ein Text", 1)], "another target changes the source")
    corpus(data, "in.jsonl")


def trees(data: bytes) -> None:
    gold, parse_line, parameters = parts(data, 3)
    with contextlib.suppress(MalformedTreeError):
        for tree, _ in parse_trees(as_text(gold).split("\n")):
            expect(next(parse_trees([str(tree)]))[0].words() == tree.words(), "a tree loses words")
            if simple := simplify(tree):
                again = delinearise(linearise(simple), simple.words())
                expect(linearise(again) == linearise(simple), "symbols don't give the tree")
    corpus(gold, "in.mrg")
    read = read_parameters(str(file("in.prm", parameters)))
    for one, other in itertools.zip_longest(
        as_text(gold).split("\n"), as_text(parse_line).split("\n"), fillvalue=""
    ):
        compare(one, other, read)


def glossary(data: bytes) -> None:
    terms, text = parts(data, 2)
    known = read_glossary(str(file("in.tsv", terms)), ("en", "de"))
    for target in {match.target for match in Glossary(known).matches(as_text(text))}:
        expect(
            not target.isprintable() or contains(f"a {target} b", target),
            "a term is not found in a text",
        )
        segment(tokenizers()["bpe"], target)


@cache
def tokenizers() -> dict[str, Tokenizer]:
    """A tokenizer of each kind."""
    sources = [
        "A dog runs over the grass.",
        "Two men  are sitting.",
        " The child's red ball, 3.5 m away!",
    ] * 25
    targets = ["Ein Hund läuft über das Gras.", "Zwei Männer sitzen.", "(S (NP (DT NN )NP )S"] * 25
    learn = partial(Tokenizer.train, sources, targets, vocab_size=400)
    more = {
        "placeholders": learn(placeholder_tokens="\ufdd0\ufdd1"),
        "symbols": learn(joint=False, symbols=True),
    }
    return {
        "bpe": learn(),
        "unigram": learn(kind="unigram"),
        "separate": learn(joint=False),
        **more,
    }


sampler = cache(partial(SubwordSampler, strength=0.5))


def tokens(data: bytes) -> None:
    """Decoding gives the text back; half of a surrogate pair becomes U+FFFD."""
    texts = [as_text(part) for part in data.split(b"\n")]
    kind = [*tokenizers()][len(data) % len(tokenizers())]
    for side in (tokenizers()[kind].source, tokenizers()[kind].target):
        rows = side.encode(texts)
        given = rows.lists()
        for text, ids in zip(texts, given, strict=True):
            expect(
                "".join(text[slice(*span)] for span in side.spans_in(text, ids)) == text,
                "spans lose text",
            )
        expect(side.encode(texts[:1]).lists() == given[:1], "a text alone has other tokens")
        if kind == "symbols" and side == tokenizers()[kind].target:
            continue  # words that are no symbols are spelt behind a space
        decoded = side.decode(given)
        expect(
            decoded == [re.sub("[\ud800-\udfff]", "\ufffd" * 3, text) for text in texts],
            "text is lost",
        )
        if rows.lengths.max() < 256:  # training has no longer texts, by default
            drawn = sampler(side).sample(rows, np.random.default_rng(len(data)))
            expect(side.decode(drawn.lists()) == decoded, "sampled subwords lose text")


def plain_inline(data: bytes) -> None:
    """Masking loses nothing, and a text whose sentences are translated by themselves stays the same."""
    text = as_text(data)
    kind = TextKind(message=len(data) % 2 == 0)
    masked = mask(text, kind)
    expect(original(masked) == text, "masking loses text")
    cut_and_join(text, masked.text, masked)
    with_tokens(masked)
    changed = with_shared_tokens(text, text)
    expect(changed is None or changed[0] == changed[1], "one text is masked in two ways")
    short = {"lengths": lambda them: [*map(len, them)], "max_length": 9}
    options = ({}, {"placeholder_tokens": True}, short)[len(data) % 3]
    plan = Plan([text], "en", kinds=[kind], **options)
    (found,) = plan.assemble([Translation(sentence, 0.0, ()) for sentence in plan.sentences])
    if all(mark.kind == "word" for mark in masked.marks) and not {"guessed", "split"} & {
        *found.flags
    }:
        # Behind a character of Chinese, a sentence may get a blank that its translation needs.
        blanks = re.compile(r"\s" if re.search(f"[{NO_BLANK}]", text) else "$^")
        same = [blanks.sub("", each) for each in (found.text, text)]
        expect(same[0] == same[1], f"a translation by itself differs: {found.text!r}")


def marked_inline(data: bytes) -> None:
    text = as_text(data)
    kind = TextKind(markup=True, preserve=len(data) % 2 == 0, message=len(data) % 3 == 0)
    masked = mask(text, kind)
    cut_and_join(original(masked), masked.text, masked)
    plan = Plan([text], "en", kinds=[kind])
    plan.assemble([Translation(sentence.swapcase(), 0.0, ()) for sentence in plan.sentences])
    is_text(masked)


def cut_and_join(text: str, shown: str, masked: Masked) -> None:
    gaps, cuts = cut(masked, whole_words(masked, split(shown, "en")))
    joined = "".join(itertools.chain(*zip(gaps, [*map(original, cuts), ""], strict=True)))
    # Blanks beside tags are restored where words are.
    if any(mark.before or mark.after for mark in masked.marks):
        joined, text = ("".join(each.split()) for each in (joined, text))
    # A tag without a partner may move before another tag.
    moves = any(mark.kind == "half" for mark in masked.marks)
    expect(
        joined == text or (moves and sorted(joined) == sorted(text)),
        "sentences lose tags or placeholders",
    )


def sentences(data: bytes) -> None:
    """Only blanks and list markers stand outside the sentences."""
    language, content = parts(data, 2)
    text = as_text(content)
    spans = split(text, language.decode("utf-8", "replace"))
    short = [
        part for span in spans for part in shorten(text, span, lambda them: [*map(len, them)], 9)
    ]
    for found in (spans, short):
        edges = [0, *(edge for span in found for edge in span), len(text)]
        expect(
            edges == sorted(edges) and all(begin < end for begin, end in found), "sentences overlap"
        )
        for left, right in zip(edges[::2], edges[1::2], strict=True):
            between = text[left:right].removeprefix("" if left else "\ufeff")
            marker = BULLET.match(f"{between}x")
            expect(
                not between[marker.end() if marker else 0 :].strip(),
                f"{between!r} is in no sentence",
            )
    expect(all(end - begin <= 9 for begin, end in short), "a part is too long")


def recipe(data: bytes) -> None:
    config = configure(read_recipe(data.decode("utf-8", "replace"), "recipe.toml"))
    expect(
        configure(read_recipe(to_toml(config), "config.toml")) == config,
        "a recipe changes when it is written",
    )


def options(data: bytes) -> None:
    for argument in as_text(data).split("\n")[:16]:  # one takes a millisecond
        with contextlib.suppress(UserError):
            configure(parse_assignments([argument]))
        with contextlib.suppress(UserError):
            limits_from([argument])
        with contextlib.suppress(UserError):
            shards.read_shard(argument)


def request(data: bytes) -> None:
    """The body of a request, its content type and its query."""
    kind, query, body = parts(data, 3)
    fields = parse(body, kind.decode("latin-1"), query, 8)
    for model in (Texts, Detection, Asked):
        with contextlib.suppress(UserError):
            asked = validate(model, fields)
            json.dumps(asked.model_dump(), ensure_ascii=False).encode()
            if isinstance(asked, Texts):
                check_limits(asked, [asked.q] if isinstance(asked.q, str) else asked.q, Limits())
                Glossary([Term(*entry) for entry in asked.glossary.items()])


def chat(data: bytes) -> None:
    """The messages of a chat: a system message and a user's message."""
    system, user = (each.decode("utf-8", "replace") for each in parts(data, 2))
    prompt = read_prompt(system, user)
    find_language(prompt.target, ["de", "zh_Hans"])
    batch = read_batch(prompt.text)
    written = batch.written(batch.texts)
    expect(read_batch(written).texts == batch.texts, "a text changes when it is written")
    expect(batch.is_json or written == prompt.text, "the form of a batch changes")


@cache
def address() -> tuple[str, int]:
    """The address of a server in this process."""
    source, target = write_corpus(PLACE, 40)
    with contextlib.redirect_stderr(io.StringIO()):
        files = ("--train", source, target, "--from", "ka", "--to", "zu", "--out", PLACE / "served")
        command("train", *files, *TINY, "train.steps=1", "data.holdout=20")
        store = ModelStore(
            [Model.read("served", PLACE / "served")], partial(load, engine="torch", threads=1)
        )
        store.load_all()
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    app = application(store, Keys(), Limits(per_address=10**9), local=True)
    threading.Thread(target=network.run, args=(app, listening, Limits(), []), daemon=True).start()
    return listening.getsockname()


def http(data: bytes) -> None:
    """The server closes the connection, and its first answer is not an internal error."""
    with socket.create_connection(address(), timeout=SECONDS) as connection:
        answer = b""
        try:
            for part in data.split(SEPARATOR):
                connection.sendall(part)
            connection.shutdown(socket.SHUT_WR)
            while some := connection.recv(1 << 16):
                answer += some
        except OSError as error:  # the server has closed the connection
            if isinstance(error, TimeoutError):
                raise
    expect(not answer or answer.startswith(b"HTTP/1.1 "), "not an answer")
    expect(not re.match(rb"HTTP/1.1 500", answer), "an internal error")


def folder_files(data: bytes) -> None:
    """The JSON files of folders: manifests, models, prepared corpora and shards."""
    folder = PLACE / "model"
    folder.mkdir(exist_ok=True)
    for name, read in FOLDER_FILES.items():
        (folder / name).write_bytes(data)
        with contextlib.suppress(UserError):
            read(folder)
        (folder / name).unlink()


def config_with_sources(folder: Path) -> None:
    from transduce.config.settings import Settings

    (folder / model_folder.CONFIG).write_text("[data]\nsource = 'en'\n")
    try:
        Settings.of_config(model_folder.read_config(folder)).config()
    finally:
        (folder / model_folder.CONFIG).unlink()


def plan_of_shards(folder: Path) -> None:
    plan = shards.read_plan(folder)
    with contextlib.suppress(UserError):
        translating.join_translations(folder, folder.parent / "joined")
    with contextlib.suppress(UserError):
        shards.agree(folder, plan.kind, {}, [], measure=list, shards=1, unit=lambda *_: 1)


def confidence(folder: Path) -> None:
    if found := Confidence.load(folder):
        found.probability((0.0, 0.0, 0.0))


def interrupted(folder: Path) -> None:
    """Resume translations that are complete, so that no translator is needed."""
    path = folder / "translations.jsonl"
    events = [*begin(path, {"model": "m"})]
    pairs = [Pair(event.get("source", ""), "", Origin("", 1)) for event in events]
    for _, event in translated_pairs(iter(pairs), cast(Translate, None), iter(events), path, {}):
        expect(isinstance(event["text"], str), "no translation")


FOLDER_FILES: dict[str, Callable[[Path], object]] = {
    "manifest.json": verify,
    model_folder.SOURCES: config_with_sources,
    model_folder.CONFIDENCE: confidence,
    PIECES: Tokenizer.load,
    "preparation.json": read_facts,
    shards.PLAN: plan_of_shards,
    "translations.jsonl": interrupted,
    "keys": lambda folder: Keys(folder / "keys"),
}


def table(data: bytes) -> None:
    """The definition of a table of `transduce compare`. Its runs are not trained."""
    found = definition.read(file("table.toml", data), {"data.test": ("one.en", "two.de")})
    if len(found.tunings(found.trained[0])) < 100:
        for experiment in filter(
            None, (found.experiment(row, PLACE / "runs") for row in found.trained)
        ):
            configure(experiment.options)


def catalogue(data: bytes) -> None:
    """A table of corpora, a request, and the answer of a collection's catalogue."""
    tables, request, answer = parts(data, 3)
    entries = read_table(as_text(tables), "table.toml")
    entry, asked = find(entries, as_text(request))
    with patch.object(opus, "read_address", lambda _: answer):
        asked = opus.look_up(entry, asked) if entry.catalogue and not asked.version else asked
    choose(entry, asked).downloads()


def packed(data: bytes) -> None:
    """An archive that `transduce fetch` has downloaded, and the names of two of its members."""
    names, content = parts(data, 2)
    path = file("archive", content)
    wanted = {*as_text(names).split("\n")[:2]}
    with archive.readable(path):
        for _, stream in archive.members(path, wanted, ["LICENSE"]):
            expect(len(stream.read(1 << 20)) <= 1 << 20, "more bytes than were asked for")


@cache
def marian_folder() -> Path:
    """A Marian model in Hugging Face's format."""
    address()
    (PLACE / "marian").mkdir()
    huggingface.write(model_folder.load(PLACE / "served"), PLACE / "marian", "float32")
    return PLACE / "marian"


def imported(data: bytes) -> None:
    """The configuration, the tokenizer's configuration and the vocabulary of a Marian model; empty parts stay whole."""
    folder = PLACE / "imported"
    shutil.copytree(marian_folder(), folder, dirs_exist_ok=True)
    names = marian.CONFIG_FILE, marian.TOKENIZER_FILE, marian.VOCABULARY_FILE
    for name, part in zip(names, parts(data, 3), strict=True):
        if part:
            (folder / name).write_bytes(part)
    found = huggingface_reader.read(folder, "", "")
    expect(
        found.tokenizer.target.size == found.config.model.vocab_size,
        "another size of the vocabulary",
    )


def journal(data: bytes) -> None:
    """A journal that was cut off is continued."""
    path = file("journal.jsonl", data)
    with Journal(path) as opened:
        opened.write("step", loss=1.0)
    expect(list(read_events(path))[-1]["loss"] == 1.0, "an event is lost")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "html": partial(document, name="in.html"),
    "xliff": partial(both, name="in.xlf"),
    "tmx": partial(both, name="in.tmx"),
    "po": partial(both, name="in.po"),
    "srt": partial(document, name="in.srt"),
    "vtt": partial(document, name="in.vtt"),
    "txt": partial(document, name="in.txt"),
    **{suffix: partial(keyed, suffix=suffix) for suffix in KEYED},
    "csv": partial(both, name="in.csv"),
    "xcstrings": partial(both, name="in.xcstrings"),
    "ass": partial(timed, suffix="ass"),
    "sbv": partial(timed, suffix="sbv"),
    "ttml": partial(timed, suffix="ttml"),
    "markdown": partial(office_file, name="in.md"),
    "docx": partial(office, name="in.docx", member="word/document.xml"),
    "pptx": partial(office, name="in.pptx", member="ppt/slides/slide1.xml"),
    "odt": partial(office, name="in.odt", member="content.xml"),
    "epub": lambda data: office(data, "in.epub", "book.opf", "META-INF/container.xml"),
    "xlsx": partial(office, name="in.xlsx", member="xl/worksheets/sheet1.xml"),
    "office_archive": partial(office_file, name="in.docx"),
    "pages": lambda data: corpus(data, "one.html", "two.html"),
    "subtitles": lambda data: corpus(data, "one.srt", "two.srt"),
    "tsv": lambda data: corpus(data, "in.tsv"),
    "lines": lambda data: corpus(data, "one.en", "two.de"),
    "jsonl": json_lines,
    "gz": lambda data: corpus(data, "in.tsv.gz"),
    "xz": lambda data: corpus(data, "in.tsv.xz"),
    "trees": trees,
    "glossary": glossary,
    "inline": plain_inline,
    "markup": marked_inline,
    "sentences": sentences,
    "tokens": tokens,
    "recipe": recipe,
    "options": options,
    "request": request,
    "chat": chat,
    "http": http,
    "folders": folder_files,
    "journal": journal,
    "table": table,
    "catalogue": catalogue,
    "archive": packed,
    "imported": imported,
}

"""The fast engine is the same model: converted without loss, checked before it is used, kept and found again."""

import copy
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import transduce
from corpora import reverse_texts, write_texts
from transduce.config.schema import CorpusConfig, DecodeConfig, ModelConfig, RunConfig, with_options
from transduce.decoding.searcher import Fallback
from transduce.decoding.torch_engine import MAX_WORKERS, MIN_REQUEST_TOKENS, SLACK, TorchEngine
from transduce.decoding.types import Engine, Hypothesis, Request, Sentences, length_penalty
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq
from transduce.model_folder import describe, load, read_config
from transduce.preparation.prepared import read_valid
from transduce.system.errors import UserError
from transduce.system.file_lock import file_lock
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.ct2 import build as building
from transduce.wings.ct2 import convert as conversion
from transduce.wings.ct2 import engine as ct2_engine
from transduce.wings.ct2 import opening
from transduce.wings.ct2.engine import Check, CTranslate2Engine, Loss
from transduce.wings.ct2.opening import choice
from transduce.wings.ct2.registers import AVX512, features
from transduce.wings.formats import MAX_POSITIONS, refuse_config
from transduce.wings.phrasebook.examples import PHRASEBOOK, held_out, phrases

SMALL = ModelConfig(
    vocab_size=40,
    d_model=32,
    d_ff=64,
    num_heads=4,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
)
KINDS = {
    "post": SMALL,
    "pre": replace(SMALL, norm="pre"),
    "gelu": replace(SMALL, activation="gelu"),
    "silu": replace(SMALL, activation="silu", norm="pre"),
    "learned": replace(SMALL, positions="learned", max_positions=64),
    "separate": replace(SMALL, source_vocab_size=30, num_encoder_layers=3, num_decoder_layers=1),
    "blocks": with_options(SMALL, block_size=3),
}
GENERATOR = torch.Generator().manual_seed(1)
SOURCES = [
    torch.randint(4, 30, (length,), generator=GENERATOR).tolist()
    for length in (1, 1, 3, 7, 7, 12, 20)
]


def lively(config: ModelConfig) -> Seq2Seq:
    """A model whose weights, norms and biases too, are large enough that everything matters."""
    model, generator = build(config), torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data.mul_(1.6).add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    return model.eval()


def converted(
    model: Seq2Seq, config: ModelConfig, folder: Path, compute_type: str = "float32"
) -> CTranslate2Engine:
    conversion.convert(model, config, folder, compute_type)
    return CTranslate2Engine(folder, compute_type, config, threads=1)


def search(
    engine: Engine, sources: list[list[int]], limit: int, **options: float
) -> list[tuple[float, list[int]]]:
    """The best of each sentence."""
    config = replace(DecodeConfig(), **options)
    [found] = engine.search(
        [Request([""] * len(sources), sources, [limit] * len(sources))], config, 1
    )
    return [(best.score, best.tokens) for [best] in found]


@given(st.integers(1, 10**6), st.integers(1, 5000), st.integers(1, 9), st.integers(1, 12))
def test_requests_keep_all_threads_of_the_torch_engine_busy(total, max_tokens, beam_size, threads):
    """The fewest rounds in which every thread has a request of at most max_tokens."""
    engine, config = (
        TorchEngine([build(SMALL)]),
        DecodeConfig(beam_size=beam_size, max_tokens=max_tokens),
    )
    with patch("torch.get_num_threads", lambda: threads):
        budget = engine.budget(config, total)
    limit, workers = max(1, max_tokens // beam_size), min(threads, MAX_WORKERS)
    share = total / (workers * math.ceil(total / (workers * limit)))
    assert share <= budget <= min(limit, max(MIN_REQUEST_TOKENS, SLACK * share + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_converted_model_scores_and_translates_alike(kind, tmp_path):
    model = lively(KINDS[kind])
    ours, theirs = TorchEngine([model]), converted(model, KINDS[kind], tmp_path)
    targets = [source[::-1] for source in SOURCES]
    rows, expected = theirs.log_probs(SOURCES, targets), ours.log_probs(SOURCES, targets)
    assert list(map(len, rows)) == [len(target) + 1 for target in targets]
    assert [*chain(*rows)] == pytest.approx([*chain(*expected)], rel=1e-4, abs=1e-3)
    expected, found = (search(engine, SOURCES, 25, beam_size=1) for engine in (ours, theirs))
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    assert [score for score, _ in found] == pytest.approx(
        [score for score, _ in expected], rel=1e-4, abs=1e-3
    )
    # Whose end has another rule than ours.
    beams = search(theirs, SOURCES, 25, beam_size=4, length_penalty=1.0)
    scored = list(map(sum, ours.log_probs(SOURCES, [tokens for _, tokens in beams])))
    reported = [score * length_penalty(len(tokens) + 1, 1.0) for score, tokens in beams]
    assert reported == pytest.approx(scored, rel=1e-4, abs=1e-3)


OPEN = """
from pathlib import Path
from transduce.config.schema import ModelConfig
from transduce.wings.ct2.engine import CTranslate2Engine
CTranslate2Engine(Path({folder!r}), "float32", ModelConfig(), threads=1)
"""


def test_features_are_read_from_the_first_processor(tmp_path):
    (tmp_path / "cpuinfo").write_text(
        "processor\t: 0\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nflags\t\t: fpu avx512f\n"
    )
    assert "avx2" in features(tmp_path / "cpuinfo")
    assert "avx512f" not in features(tmp_path / "cpuinfo")
    assert not features(tmp_path / "none")


@pytest.mark.skipif(not features() >= AVX512, reason="no AVX-512")
def test_ctranslate2_uses_avx512_unless_the_user_says_otherwise(tmp_path):
    converted(lively(SMALL), SMALL, tmp_path)
    others = {name: value for name, value in os.environ.items() if not name.startswith("CT2")}
    command = [sys.executable, "-c", OPEN.format(folder=str(tmp_path))]
    for told in ({}, {"CT2_FORCE_CPU_ISA": "AVX2"}):
        environment = others | {"CT2_VERBOSE": "1"} | told
        said = subprocess.run(
            command, env=environment, stderr=subprocess.PIPE, text=True, check=True
        ).stderr
        assert f"Selected ISA: {told.get('CT2_FORCE_CPU_ISA', 'AVX512')}\n" in said


def test_ctranslate2_positions_equal_the_sinusoids(tmp_path):
    model = lively(SMALL)
    ours, theirs = TorchEngine([model]), converted(model, SMALL, tmp_path)
    long = torch.randint(4, 40, (700,), generator=GENERATOR).tolist()
    assert theirs.max_positions == MAX_POSITIONS
    assert theirs.log_probs([long], [long])[0] == pytest.approx(
        ours.log_probs([long], [long])[0], rel=1e-4, abs=1e-3
    )


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_translations_at_the_length_limit_are_scored_with_an_end(limit, tmp_path):
    model = lively(SMALL)
    # EOS hardly ever comes.
    model.embedding.weight.data[2] = -model.embedding.weight.data[4:].mean(dim=0) * 9
    ours, theirs = TorchEngine([model]), converted(model, SMALL, tmp_path)
    expected, found = (search(engine, SOURCES, limit, beam_size=1) for engine in (ours, theirs))
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    assert [score for score, _ in found] == pytest.approx(
        [score for score, _ in expected], rel=1e-4, abs=1e-3
    )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_engine_repeats_forbidden_ngrams(size, tmp_path):
    model = lively(SMALL)
    # EOS hardly ever comes.
    model.embedding.weight.data[2] = -model.embedding.weight.data[4:].mean(dim=0) * 9
    ours, theirs = TorchEngine([model]), converted(model, SMALL, tmp_path)
    expected, found = (
        search(engine, SOURCES, 20, beam_size=1, no_repeat_ngram=size) for engine in (ours, theirs)
    )
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    assert [score for score, _ in found] == pytest.approx(
        [score for score, _ in expected], rel=1e-4, abs=1e-3
    )
    ngrams = [
        [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)] for _, tokens in found
    ]
    assert all(len(set(each)) == len(each) for each in ngrams) and max(map(len, ngrams)) > 5


def test_converting_does_not_touch_the_model(tmp_path):
    model = lively(SMALL)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    converted(model, SMALL, tmp_path, "int8")
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_no_special_piece_is_proposed(tmp_path):
    model = lively(SMALL)
    model.embedding.weight.data[[0, 1, 3]] *= 5  # logits of PAD, BOS and UNK are often the highest
    engine = converted(model, SMALL, tmp_path)
    [free] = engine._translator.translate_batch(
        [["5", "6", "2"]], beam_size=1, max_decoding_length=30
    )
    assert {"0", "1", "3"} & {*free.hypotheses[0]}
    [(_, tokens)] = search(engine, [[5, 6]], 30, beam_size=1)
    assert tokens and min(tokens) >= 4


def test_alternatives_that_are_cut_are_different(tmp_path):
    engine, config = converted(lively(SMALL), SMALL, tmp_path), DecodeConfig(beam_size=4)
    [found] = engine.search([Request([""] * 7, SOURCES, [1, 2, 2, 3, 4, 5, 20])], config, 4)
    for hypotheses, limit in zip(found, [1, 2, 2, 3, 4, 5, 20], strict=True):
        assert len({tuple(each.tokens) for each in hypotheses}) == len(hypotheses) >= 1
        assert max(len(each.tokens) for each in hypotheses) <= limit


# -- the cache --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has begun to learn to reverse words."""
    folder = tmp_path_factory.mktemp("engines")
    options = {
        "data.vocab_size": 300,
        "data.max_tokens": 256,
        "data.holdout": 20,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.d_model": 32,
        "model.d_ff": 64,
        "model.num_heads": 2,
        "model.dropout": 0.1,
        "train.steps": 150,
        "train.warmup": 50,
        "train.save_every": 50,
        "train.validate_every": 150,
        "train.threads": 1,
        "train.precision": "float32",
        "decode.max_extra_tokens": 2,
    }
    files = write_texts(folder, "train", 300, seed=0)
    return transduce.train(folder / "model", train=files, options=options).folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "transduce" / "engines"


def test_the_fast_engine_is_made_once_and_named(trained, cache, capfd):
    for model in trained, trained / ".." / trained.name:
        translator = transduce.load(model)
        assert translator.engine.name.startswith("CTranslate2, ")
    said = capfd.readouterr().err
    assert (
        said.count("Building a fast engine") == 1
        and "sentences get the same translation as from torch" in said
    )
    [kept] = cache.iterdir()
    check = json.loads((kept / "check.json").read_text())
    assert check["comparison"] in said and check["compute_type"] in translator.engine.name
    sources = reverse_texts(40, seed=3)[0]
    exact = transduce.load(trained, engine="torch")
    scores = [
        exact.score(sources, [t.text for t in each.translate(sources)])
        for each in (exact, translator)
    ]
    ours, theirs = (sum(score.score for score in each) / len(sources) for each in scores)
    assert theirs > ours - 0.5


@pytest.mark.usefixtures("cache")
def test_an_engine_is_judged_by_the_search_of_its_model(trained, monkeypatch):
    """Whatever the options of the first translation are: later ones use the same engine."""
    judged, compare = list[DecodeConfig](), building.compare
    monkeypatch.setattr(
        building, "compare", lambda own, *rest: judged.append(own.config) or compare(own, *rest)
    )
    transduce.load(
        trained, {"decode.length_penalty": 5.0, "decode.beam_size": 10}, engine="ctranslate2"
    )
    assert judged and {*judged} == {read_config(trained).decode}


def test_a_gpu_counts_only_if_our_own_search_can_use_it(monkeypatch):
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 1)
    for usable in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda usable=usable: usable)
        assert opening.has_gpu() == usable


def test_held_out_pairs_come_from_the_prepared_corpus_if_it_is_unchanged(trained, tmp_path):
    prepared = Path(shutil.copytree(trained / "data", tmp_path / "prepared"))
    model = load(trained)._replace(folder=tmp_path)
    corpus = CorpusConfig(files=(str(prepared),))
    model = model._replace(
        config=replace(model.config, data=replace(model.config.data, corpora=(corpus,)))
    )
    assert held_out(model, 5) == read_valid(prepared)[:5]
    Tokenizer.train(["a b c"], ["d e f"], vocab_size=270, joint=True).save(prepared)
    (prepared / "manifest.json").unlink()
    assert {pair.origin.file for pair in held_out(model, 5)} == {PHRASEBOOK}
    data = replace(model.config.data, source="de", directions=("de-en", "de-fr"))
    assert [pair.direction for pair in phrases(data, 3)] == ["de-en", "de-fr", "de-en"]
    assert phrases(data, 1)[0].source == phrases(model.config.data, 1)[0].target


@pytest.mark.usefixtures("cache")
def test_a_kept_engine_translates_without_torch(trained):
    transduce.load(trained)
    code = f"import sys, transduce; print(transduce.load({str(trained)!r}).translate(['a b'])[0].text); "
    found = subprocess.run(
        [sys.executable, "-c", code + "print({'torch', 'numpy.random'} & {*sys.modules})"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines()[-1] == "set()" and "Making" not in found.stderr


def test_a_relative_folder_is_found_from_another_working_directory(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(trained.parent)
    translator = transduce.load(trained.name, engine="ctranslate2")
    monkeypatch.chdir(tmp_path)
    # Opens the engine torch.
    [found] = translator.translate(["A dog runs."], glossary={"dog": "Katze"})
    assert "Katze" in found.text


def test_several_threads_open_the_engine_for_glossaries_once(trained):
    loaded, opened = transduce.load(trained, engine="ctranslate2"), []

    def open_engine() -> Engine:
        opened.append(loaded.fallback.engine)
        return opened[-1]

    translator = replace(loaded, fallback=Fallback(open_engine))
    with ThreadPoolExecutor(5) as pool:
        found = list(
            pool.map(
                lambda _: translator.translate(["A dog runs."], glossary={"dog": "Katze"}), range(5)
            )
        )
    assert all(each == found[0] for each in found)
    assert len(opened) == 1


def test_a_process_that_forked_after_loading_must_load_again(trained, monkeypatch):
    translator = transduce.load(trained, engine="ctranslate2")
    # In a forked process, CTranslate2 has no threads and waits forever.
    monkeypatch.setattr("os.getpid", lambda: 1)
    with pytest.raises(UserError, match="loaded before this process forked"):
        translator.translate(["A dog runs."])


def test_another_model_has_another_engine_and_a_damaged_one_is_made_again(
    trained, cache, tmp_path, capfd
):
    other = tmp_path / "other"
    shutil.copytree(trained, other)
    transduce.load(trained)
    [kept] = cache.iterdir()
    damaged = bytearray((kept / "model.bin").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (kept / "model.bin").write_bytes(damaged)
    transduce.load(trained).translate(["a b"])
    assert [path.name for path in cache.iterdir()] == [kept.name]
    assert capfd.readouterr().err.count("Building a fast engine") == 2
    manifest = json.loads((other / "manifest.json").read_text())
    # Other bytes: as good as another model.
    (other / "manifest.json").write_text(json.dumps(manifest))
    transduce.load(other)
    assert len(list(cache.iterdir())) == 2


def wrong_matrix(model: Seq2Seq) -> None:
    model.decoder[0].feed_forward.out.weight.data.normal_(
        std=2.0, generator=torch.Generator().manual_seed(0)
    )


class Reversed(torch.nn.Module):
    """Positions whose channels are in the wrong order."""

    def __init__(self, right: torch.nn.Module):
        super().__init__()
        self.right = right

    def forward(self, start: int, length: int) -> torch.Tensor:
        return self.right(start, length).flip(-1)


def wrong_positions(model: Seq2Seq) -> None:
    model.source_positions = Reversed(model.source_positions)
    model.target_positions = Reversed(model.target_positions)


def saturated_weights(model: Seq2Seq) -> None:
    for weight in model.parameters():
        weight.data.clamp_(-0.1, 0.1)


@pytest.mark.parametrize("fault", [wrong_matrix, wrong_positions, saturated_weights])
def test_an_engine_that_translates_worse_is_not_used(fault, trained, cache, monkeypatch, capfd):
    """The converted model is wrong: it must be noticed, and our own search must take its place."""

    def damaged(model: Seq2Seq, *rest: object) -> None:
        wrong = copy.deepcopy(model)
        fault(wrong)
        convert(wrong, *rest)

    convert = conversion.convert
    monkeypatch.setattr(building, "convert", damaged)
    assert transduce.load(trained).engine.name == "torch"
    assert "so torch is used." in capfd.readouterr().err
    monkeypatch.setattr(building, "convert", convert)
    assert transduce.load(trained).engine.name == "torch"  # what was found is kept, too
    assert {file.name for file in cache.glob("*/*")} == {"check.json", "manifest.json"}
    with pytest.raises(UserError, match="its translations are worse than those of our own search"):
        transduce.load(trained, engine="ctranslate2")
    assert choice(trained, describe(trained).config).startswith(
        "torch, since CTranslate2 is worse: "
    )


def test_single_loop_does_not_reject_an_engine(trained):
    own = transduce.load(trained, engine="torch")
    sources, targets = reverse_texts(20, seed=4)
    sentences = Sentences(sources, own.tokenizer.encode_source(sources), list(range(20)))
    ours = own.search(own.engine, sentences, 1)
    again = own.tokenizer.encode_target(["ba " * 40])[0]
    looped = [[Hypothesis(-99.0, again)], *ours[1:]]
    assert building.compare(own, sentences, ours, ours, targets).is_good()
    assert building.compare(own, sentences, ours, looped, targets).is_good()
    many = [[Hypothesis(-99.0, again)] if i < 3 else best for i, best in enumerate(ours)]
    assert not building.compare(own, sentences, ours, many, targets).is_good()
    other = [[hypotheses[0]] for hypotheses in [*ours[1:], ours[0]]]
    assert not building.compare(own, sentences, ours, other, targets).is_good()
    assert not building.compare(own, sentences, ours, other).is_good()


@pytest.mark.parametrize(
    ("loops", "score", "chrf", "is_good"),
    [
        (0, Loss(0.04, 0.0), Loss(0.2, 0.0), True),
        (2, Loss(-1.0, 0.0), Loss(-9.0, 0.0), True),
        (3, Loss(0.0, 0.0), Loss(0.0, 0.0), False),
        (0, Loss(0.1, 0.0), Loss(0.0, 0.0), False),
        (0, Loss(0.1, 0.08), Loss(0.0, 0.0), True),  # the loss may be chance
        (0, Loss(0.2, 9.0), Loss(0.0, 0.0), False),  # few sentences excuse little
        (0, Loss(0.0, 0.0), Loss(0.5, 0.0), False),
        (0, Loss(0.0, 0.0), Loss(1.2, 9.0), True),
        (0, Loss(0.0, 0.0), Loss(2.0, 9.0), False),
        (0, Loss(0.0, 0.0), None, True),
        (0, Loss(0.1, 0.0), None, False),
        (0, Loss(math.nan, 0.0), None, False),
    ],
)
def test_how_much_worse_an_engine_may_be(loops, score, chrf, is_good):
    assert Check(100, loops, 90, score, chrf).is_good() == is_good


def test_unwritable_cache_builds_the_engine_only_on_request(trained, tmp_path, monkeypatch, capfd):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert transduce.load(trained).engine.name == "torch"
    assert "The fast engine is not used: it can't be built: " in capfd.readouterr().err
    assert transduce.load(trained, engine="ctranslate2").engine.name.startswith("CTranslate2, ")
    assert "built for this run only" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "error", [ImportError("no libiomp"), OSError(28, "No space left"), UserError("no home")]
)
def test_failed_engine_build_falls_back_to_torch(error, trained, cache, monkeypatch, capfd):
    monkeypatch.setattr(building, "build_in_cache", lambda *_: (_ for _ in ()).throw(error))
    assert transduce.load(trained).engine.name == "torch"
    assert f"it can't be built: {error}" in capfd.readouterr().err
    with pytest.raises(
        UserError, match=r"The engine ctranslate2 can't run .*: it can't be built: "
    ):
        transduce.load(trained, engine="ctranslate2")
    assert not list(cache.iterdir())


@pytest.mark.parametrize("damage", ["[", '"text"', "{}", "null"])
@pytest.mark.usefixtures("cache")
def test_damaged_validation_text_keeps_no_model_from_translating(damage, trained, tmp_path, capfd):
    folder = shutil.copytree(trained, tmp_path / "model")
    (folder / "data" / "valid.jsonl").write_text(f"{damage}\n")
    assert transduce.load(folder).engine.name == "torch"
    assert "valid.jsonl is damaged" in capfd.readouterr().err


@pytest.mark.usefixtures("cache")
def test_a_processor_without_int8_has_float32(trained, monkeypatch):
    class Limited(CTranslate2Engine):
        def __init__(self, folder: Path, compute_type: str, *rest: int):
            if compute_type == "int8":
                raise ValueError("Requested int8 compute type")
            super().__init__(folder, compute_type, *rest)

    for module in ct2_engine, building:
        monkeypatch.setattr(module, "CTranslate2Engine", Limited)
    assert transduce.load(trained).engine.name == "CTranslate2, float32"


def test_uncompared_engine_is_not_used(trained):
    for references in ([], None):
        check = building.compare(
            transduce.load(trained, engine="torch"), Sentences([], [], []), [], [], references
        )
        assert check.sentences == 0 and not check.is_good()


def test_engine_built_first_is_kept(trained, cache):
    transduce.load(trained)
    [kept] = cache.iterdir()
    assert building.build_in_cache(
        trained, describe(trained).config, kept, 1
    ) == ct2_engine.read_compute_type(kept)
    assert [each.name for each in cache.iterdir()] == [kept.name]


def test_leftovers_of_killed_builds_are_removed_and_running_builds_kept(trained, cache):
    for name in (".abc.aside-1", ".abc.aside-2"):
        (cache / name).mkdir(parents=True)
        (cache / name / "model.bin").touch()
    with file_lock(cache / ".abc.aside-2.lock", "busy"):
        transduce.load(trained)
        assert sorted(path.name for path in cache.glob(".*")) == [
            ".abc.aside-2",
            ".abc.aside-2.lock",
        ]
    [kept] = cache.glob("[!.]*")
    (
        cache / f".{kept.name}.aside-3.lock"
    ).touch()  # of a process that was killed when the engine was complete
    transduce.load(trained)
    assert [path.name for path in cache.glob(".*")] == [".abc.aside-2"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"kind": "recurrent"}, r"it supports Transformers only, not model\.kind = recurrent"),
        ({"experts": 4}, r"it does not support model\.experts"),
        ({"window": 3}, r"it does not support model\.window = 3"),
        ({"attention": "additive"}, r"it does not support model\.attention = additive"),
        ({"d_k": 3}, r"it does not support model\.d_k = 3"),
    ],
)
def test_unsupported_models_are_refused_with_their_option(changed, why):
    config = RunConfig(model=with_options(SMALL, **changed))
    refusal = refuse_config("ctranslate2", config)
    assert refusal and re.fullmatch(why, refusal.reason)


def test_ensembles_and_gpus_use_torch(trained, cache, monkeypatch):
    assert transduce.load([trained, trained]).engine.name == "torch"
    with pytest.raises(
        UserError,
        match=r"The engine ctranslate2 can't run .*: it is for one model, not an ensemble",
    ):
        transduce.load([trained, trained], engine="ctranslate2")
    monkeypatch.setattr(opening, "has_gpu", lambda: True)
    assert transduce.load(trained).engine.name == "torch"
    assert not cache.exists()
    assert transduce.load(trained, engine="ctranslate2").engine.name.startswith("CTranslate2, ")


@pytest.mark.usefixtures("cache")
def test_missing_ctranslate2_falls_back_to_torch(trained, monkeypatch):
    monkeypatch.setattr(opening, "find_spec", lambda _: None)
    assert transduce.load(trained).engine.name == "torch"
    with pytest.raises(UserError, match=r"pip install 'transduce\[fast\]'"):
        transduce.load(trained, engine="ctranslate2")

"""Parsing: whatever the probabilities are, what comes out is a tree over the words."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from command_line import run
from corpora import write_texts
from transduce import model_folder
from transduce.config.schema import DecodeConfig
from transduce.decoding.beam import beam_search
from transduce.system.errors import UserError
from transduce.text.tree_symbols import ALL_MARKS
from transduce.training.run import train
from transduce.wings.phrasebook.examples import examples
from transduce_lab.parsing.parser import Parser
from transduce_lab.parsing.trees import (
    delinearise,
    linearise,
    marked_tags,
    parse_trees,
    read_trees,
    simplify,
    without_marks,
)
from transduce_lab.parsing.well_formed import CLOSES_TO, WellFormed, kinds_of

PIECES = [
    "<pad>",
    "<s>",
    "</s>",
    "<unk>",
    "▁(S",
    "▁(NP",
    "▁(",
    "▁)",
    "▁)0",
    "▁)1",
    "▁)2",
    "▁NN",
    "▁.",
    "▁VP",
    "▁-LRB-",
    "▁0)",
    "▁1)",
]
MARKED = ["0)", "1)"]
SYMBOLS = ["(S", "(NP", "(", ")", ")0", ")1", ")2", "NN", ".", "-LRB-", *MARKED]  # VP is no symbol


class Random:
    """A stepper with new random logits, some of them extreme, for every token."""

    device = torch.device("cpu")

    def __init__(self, seed: int, spread: float):
        self.generator, self.spread = torch.Generator().manual_seed(seed), spread

    def __call__(self, tokens: Tensor) -> Tensor:
        return (
            self.spread * torch.randn(len(tokens), len(PIECES), generator=self.generator)
        ).log_softmax(-1)

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        pass


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(2, 9)), min_size=1, max_size=4),
    st.integers(0, 10**6),
    st.sampled_from([0.1, 3.0, 30.0]),
    st.integers(1, 5),
)
def test_any_probabilities_give_trees(sizes, seed, spread, beam_size):
    words, limits = [count for count, _ in sizes], [2 * count + extra for count, extra in sizes]
    only = WellFormed(kinds_of(PIECES, SYMBOLS), words, limits)
    found = beam_search(Random(seed, spread), limits, beam_size=beam_size, token_filter=only)
    for hypotheses, count, limit in zip(found, words, limits, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            assert len(hypothesis.tokens) <= limit
            text = " ".join(PIECES[token].removeprefix("▁") for token in hypothesis.tokens)
            tree = delinearise(without_marks(text), [f"w{i}" for i in range(count)])
            assert str(tree) and tree.words() == [f"w{i}" for i in range(count)]
            assert [symbol for symbol in text.split(" ") if symbol in MARKED] == (MARKED * count)[
                :count
            ]


def test_allowed_next_symbols_by_hand():
    kinds = kinds_of(PIECES, SYMBOLS)
    assert kinds.tolist() == [
        0,
        0,
        0,
        0,
        1,
        1,
        1,
        2,
        *(CLOSES_TO + depth for depth in range(3)),
        3,
        3,
        0,
        3,
        4,
        5,
    ]
    opens, tags, close, end = {"▁(S", "▁(NP", "▁("}, {"▁NN", "▁.", "▁-LRB-"}, {"▁)"}, {"</s>"}
    for text, words, limit, wanted in [
        ("", 2, 9, opens),
        ("▁(S", 2, 9, opens | {"▁0)"}),
        ("▁(S ▁0)", 2, 9, tags),
        ("▁(S ▁(NP ▁0) ▁NN", 2, 10, opens | {"▁1)", "▁)1"} | close),
        ("▁(S ▁(NP ▁(NP ▁0) ▁NN", 2, 13, opens | {"▁1)", "▁)1", "▁)2"} | close),
        ("▁(S ▁(NP ▁(NP ▁0) ▁NN ▁)1", 2, 13, opens | {"▁1)"}),
        ("▁(S ▁(NP ▁(NP ▁0) ▁NN ▁)2 ▁)", 2, 13, opens | {"▁1)"}),
        ("▁(S ▁(NP ▁(NP ▁0) ▁NN ▁)1 ▁(NP ▁1) ▁NN", 2, 13, close | {"▁)0", "▁)1"}),
        ("▁(S ▁(NP ▁(NP ▁0) ▁NN ▁)1 ▁(NP ▁1) ▁NN ▁)1", 2, 13, close | {"▁)0"}),
        ("▁(S ▁0) ▁NN", 2, 9, opens | {"▁1)"}),  # the root closes behind the last word
        ("▁(S ▁0) ▁NN ▁1) ▁NN", 3, 9, {"▁0)"}),
        ("▁(S ▁0) ▁NN ▁1) ▁NN", 2, 9, close | {"▁)0"}),
        ("▁(S ▁0) ▁NN ▁1) ▁NN ▁)", 2, 9, end),
        ("▁(S ▁(NP", 1, 6, {"▁0)"}),  # no room for a third bracket
    ]:
        tokens = torch.tensor([[[1, *map(PIECES.index, text.split())]]])
        log_probs = torch.zeros(1, 1, len(PIECES))
        WellFormed(kinds, [words], [limit])(tokens, log_probs)
        assert {
            piece
            for piece, value in zip(PIECES, log_probs[0, 0].tolist(), strict=True)
            if value == 0
        } == wanted


# -- from trees to trees ---------------------------------------------------------------------------------

SHAPE = {
    "data.symbols": True,
    "data.joint": False,
    "data.vocab_size": 400,
    "data.max_tokens": 512,
    "data.bleu_tokenize": "none",
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 2,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "train.steps": 6,
    "train.warmup": 4,
    "train.threads": 1,
    "decode.max_extra_tokens": 60,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """trees.mrg, a few of the phrasebook's, and a model that has hardly learnt from them."""
    folder = tmp_path_factory.mktemp("parsing")
    trees = (f"( {example.tree} )\n" for example in examples("train", 60))
    (folder / "trees.mrg").write_text("".join(trees), encoding="utf-8")
    files = {
        "data.corpora": [{"files": [str(folder / "trees.mrg")]}],
        "data.valid": (str(folder / "trees.mrg"),),
    }
    train(SHAPE | files, folder / "model")
    return folder


def test_every_word_of_the_targets_is_a_piece(place):
    tokenizer = model_folder.load(place / "model").tokenizer
    targets = [
        marked_tags(linearise(simplify(tree))) for tree, _ in read_trees(str(place / "trees.mrg"))
    ]
    assert set(tokenizer.target_symbols().values()) == set(
        " ".join([*targets, ALL_MARKS]).split(" ")
    )
    text = "(S (NP 0) DT 1) NN ) (VP 2) VBZ ) 3) . )0"
    (ids,) = tokenizer.encode_target([text])
    assert len(ids) == len(text.split()) and tokenizer.decode([ids]) == [text]


def test_untrained_parser_outputs_trees(place, capsys, tmp_path):
    lines = [
        "The dog ( a pet ) runs .",
        "",
        "  Yes !",
        "word " * 40,
        "\u00a0",
        "a\x0cb\u2009c d",
        "\x1c \u2003",
    ]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    status, printed, said = run(capsys, "parse", place / "model", "--input", tmp_path / "in.txt")
    assert status == 0, said
    parses = printed.split("\n")[:-1]
    assert len(parses) == 7 and parses[1] == ""
    for line, parse in zip(lines, parses, strict=True):
        words = [tree.words() for tree, _ in parse_trees([parse])]
        wanted = line.replace("(", "-LRB-").replace(")", "-RRB-").replace("\x0c", " ")
        assert words == ([wanted.strip(" ").split(" ")] if line else [])


def test_trees_are_evaluated_by_brackets(place, capsys, tmp_path):
    status, printed, said = run(
        capsys,
        "evaluate",
        place / "model",
        place / "trees.mrg",
        "--output",
        tmp_path / "out.mrg",
        "--json",
    )
    assert status == 0, said
    found = json.loads(printed)
    assert found["all"]["sentences"] == 60
    # EVALB leaves punctuation out by its tag, so that a wrong one makes another number of words, or none.
    assert sum(found["all"][name] for name in ("valid", "errors", "skipped")) == 60
    agreed = found["all, with the gold trees' punctuation"]
    assert agreed["valid"] + agreed["skipped"] == 60 and not agreed["errors"]
    assert found["changed by the constraint"] > 30, "left alone, it makes no trees yet"
    free = found["all, without the constraint"]
    assert free["test"] < agreed["test"] and free["gold"] == agreed["gold"], (
        "what is not a tree has no brackets"
    )
    assert free["valid"] + free["skipped"] == 60 and not free["errors"]
    status, printed, _ = run(
        capsys, "evaluate", "--hypothesis", tmp_path / "out.mrg", place / "trees.mrg", "--json"
    )
    assert json.loads(printed)["all"] == found["all"]
    (tmp_path / "gold.txt").write_bytes((place / "trees.mrg").read_bytes())
    status, printed, _ = run(
        capsys, "evaluate", "--hypothesis", tmp_path / "gold.txt", place / "trees.mrg"
    )
    assert status == 0 and "F1                  100.00  100.00" in printed
    (tmp_path / "my.prm").write_text("DELETE_LABEL TOP\nDELETE_LABEL\n")
    command = (
        "evaluate",
        "--hypothesis",
        tmp_path / "gold.txt",
        place / "trees.mrg",
        "--evalb",
        tmp_path / "my.prm",
    )
    status, _, said = run(capsys, *command)
    assert status == 2 and "my.prm, line 2" in said


def test_mistakes_in_what_is_evaluated_are_named(place, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wsj").mkdir()
    (tmp_path / "wsj/a.mrg").write_text("(S (NN a))\n(S (NN b))")
    for name, lines in ("one", 1), ("two", 2), ("three", 3):
        (tmp_path / name).write_text("(S (NN a))\n" * lines)
    status, printed, said = run(capsys, "evaluate", place / "model", "wsj", "--json")
    assert status == 0 and json.loads(printed)["all"]["sentences"] == 2, said
    assert run(capsys, "evaluate", "--hypothesis", "two", "wsj")[0] == 0
    for command, sentence in {
        "evaluate --hypothesis one wsj": "one has 1 line, but wsj has 2 trees. Write one parse per line.",
        "evaluate --hypothesis three wsj/a.mrg": "three has 3 lines, but wsj/a.mrg has 2 trees. Write one parse per",
        "evaluate MODEL wsj --training one": "Parse trees are scored by brackets. Leave out --training.",
        "evaluate MODEL wsj/a.mrg --slices --training one": "Leave out --slices and --training.",
        "parse MODEL --input wsj": "wsj is a folder. Name a file in it.",
    }.items():
        status, _, said = run(capsys, *command.replace("MODEL", str(place / "model")).split())
        assert status == 2 and sentence in said


def test_words_of_unicode_white_space_are_parsed(place):
    (gold,) = (tree for tree, _ in parse_trees(["(S (NN \u00a0) (NN \u2003))"]))
    (parse,) = Parser(
        [model_folder.load(place / "model")], DecodeConfig(max_extra_tokens=60)
    ).parse_gold([gold])
    assert parse and parse.words() == ["\u00a0", "\u2003"]


def test_other_models_do_not_parse_and_parsers_need_room(place, capsys, tmp_path):
    for command in (
        ["translate", place / "model", "--input"],
        ["evaluate", place / "model", tmp_path / "one"],
    ):
        (tmp_path / "one").write_text("a\n")
        status, _, said = run(capsys, *command, tmp_path / "one")
        assert status == 2 and "model is a parser. Use `transduce parse`" in said
    write_texts(tmp_path, "train", 60, 1)
    trees = {
        "data.corpora": [{"files": [str(place / "trees.mrg")]}],
        "data.valid": (str(place / "trees.mrg"),),
    }
    pair = {"data.corpora": [{"files": [str(tmp_path / "train.src"), str(tmp_path / "train.tgt")]}]}
    train(
        {**SHAPE, **pair, "data.symbols": False, "data.valid": (), "data.holdout": 0},
        tmp_path / "other",
    )
    files = tmp_path / "train.src", tmp_path / "train.tgt"
    status, _, said = run(
        capsys, "evaluate", tmp_path / "other", *files, "--against", place / "model"
    )
    assert status == 2 and "model is a parser." in said
    status, _, said = run(
        capsys, "evaluate", place / "model", place / "trees.mrg", "--against", place / "model"
    )
    assert status == 2 and "Parse trees are scored by brackets. Leave out --against." in said
    (tmp_path / "one").write_text("a b c\n")
    status, _, said = run(capsys, "parse", tmp_path / "other", "--input", tmp_path / "one")
    assert status == 2 and "was not trained on trees" in said
    status, _, said = run(
        capsys, "parse", place / "model", "--input", tmp_path / "one", "decode.max_extra_tokens=0"
    )
    assert status == 2 and "A tree of 3 words needs more than" in said
    (tmp_path / "one").write_text("a\n" + "word " * 90 + "\n")
    limited = {"model.positions": "learned", "model.max_positions": 100, "data.max_length": 99}
    train({**SHAPE, **limited, **trees, "train.steps": 1}, tmp_path / "limited")
    status, _, said = run(capsys, "parse", tmp_path / "limited", "--input", tmp_path / "one")
    assert status == 2 and "Source text 2 has" in said
    with pytest.raises(UserError, match="A tree of 3 words needs more than 7 tokens"):
        Parser([model_folder.load(place / "model")], DecodeConfig())._token_filter(
            ["0) a 1) b 2) c"], [7]
        )


# -- what a parser is trained on --------------------------------------------------------------------------


def options(shape):
    return [
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in shape.items()
    ]


@pytest.fixture
def others(place, tmp_path) -> Path:
    """The working directory: trees.mrg, new.mrg with a new label, x.tsv, and the folder mixed with both kinds."""
    (tmp_path / "mixed").mkdir()
    for name in ("trees.mrg", "mixed/a.mrg"):
        (tmp_path / name).write_bytes((place / "trees.mrg").read_bytes())
    for name in ("x.tsv", "mixed/notes.tsv"):
        (tmp_path / name).write_text(
            "".join(f"Hello {number} .\tHallo (Welt {number}).\n" for number in range(60))
        )
    (tmp_path / "new.mrg").write_text("(S (NP (NN x)))\n" + "(S (QQ (NN x)))\n" * 2)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (
            "--train mixed",
            "mixed/notes.tsv holds no trees, unlike mixed/a.mrg. Train and validate a parser on trees ",
        ),
        ("--train x.tsv trees.mrg", "x.tsv holds no trees, unlike trees.mrg."),
        ("--train trees.mrg --valid x.tsv", "x.tsv holds no trees, unlike trees.mrg."),
        ("--init MODEL --train x.tsv", "x.tsv holds no trees, unlike the corpus of the model."),
        (
            "--init MODEL --train trees.mrg --valid x.tsv",
            "x.tsv holds no trees, unlike the corpus of the model.",
        ),
        (
            "--train x.tsv --valid trees.mrg data.symbols=false",
            "x.tsv holds no trees, unlike trees.mrg.",
        ),
        (
            "--train trees.mrg data.symbols=false",
            "trees.mrg holds trees. Train with a recipe for parsers",
        ),
        (
            "--train trees.mrg data.augment=default",
            "data.symbols does not support data.augment. Leave",
        ),
        (
            "--init MODEL --train new.mrg",
            "new.mrg, line 2: the label 'QQ' is not in the parser's vocabulary.",
        ),
    ],
)
def test_a_parser_learns_from_trees_with_known_labels_only(
    place, others, files, named, capsys, monkeypatch
):
    monkeypatch.chdir(others)
    shape = {
        name: value
        for name, value in SHAPE.items()
        if "--init" not in files or name.startswith("train.")
    }
    arguments = files.replace("MODEL", str(place / "model")).split()
    status, _, said = run(capsys, "train", "--out", others / "out", *options(shape), *arguments)
    assert status == 2 and named in said, said
    assert not (others / "out" / "config.toml").exists()


def test_a_parser_continues_on_trees_with_known_labels(place, others, capsys):
    trees = [example.tree for example in examples("train", 20)]
    # Closes until some number of brackets are open that is new.
    trees.append(f"{'(S (NP ' * 200}{trees[0]}{'))' * 200}")
    (others / "few.mrg").write_text("".join(f"{tree}\n" for tree in trees))
    arguments = (
        "train",
        "--out",
        others / "out",
        "--init",
        place / "model",
        "--train",
        others / "few.mrg",
    )
    status, printed, said = run(capsys, *arguments, "train.steps=1", "data.max_length=9999")
    assert status == 0 and "is ready: transduce parse" in printed, said


def test_symbols_that_are_no_trees_make_no_parser(others, capsys):
    shape = options(SHAPE | {"train.steps": 1, "data.holdout": 5})
    status, printed, said = run(
        capsys, "train", "--out", others / "out", "--train", others / "x.tsv", *shape
    )
    assert status == 0 and "x.tsv holds no trees, so the model will not be a parser." in said, said
    assert "is ready: transduce translate" in printed


def test_symbols_that_look_like_closing_brackets_are_none():
    assert kinds_of(
        ["▁)", "▁)12", "▁)x", "▁)²", "▁)."], [")", ")12", ")x", ")²", ")."]
    ).tolist() == [
        2,
        CLOSES_TO + 12,
        0,
        0,
        0,
    ]

"""The BLEU of the paper: Moses' tokens, compounds split at hyphens."""

import pytest

from command_line import run
from transduce.system.errors import UserError
from transduce_lab.paper.paper_bleu import (
    moses_tokenizer,
    paper_bleu,
    split_compounds,
    tokenised_bleu,
)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("ein Rock-Konzert", "ein Rock ##AT##-##AT## Konzert"),
        (
            "a-b-c",
            "a ##AT##-##AT## b-c",
        ),  # the second needs a character of its own before it, as in Perl
        ("Nord-Süd-Dialog", "Nord ##AT##-##AT## Süd ##AT##-##AT## Dialog"),
        ("das - und", "das - und"),
    ],
)
def test_compounds(text, split):
    assert split_compounds(text) == split


def test_moses_tokens():
    assert moses_tokenizer("de")("Er sagte: „Nein!“, z.B. heute.").split()[:3] == [
        "Er",
        "sagte",
        ":",
    ]


def test_a_compound_counts_as_three_tokens():
    reference = ["Das Rock-Konzert war sehr gut besucht ."]
    right_half = ["Das Rock-Festival war sehr gut besucht ."]
    assert paper_bleu("de")(reference, reference) == pytest.approx(100)
    tokens = "Das Rock ##AT##-##AT## {} war sehr gut besucht ."
    assert paper_bleu("de")(right_half, reference) == pytest.approx(
        tokenised_bleu([tokens.format("Festival")], [tokens.format("Konzert")])
    )


def test_paper_bleu_is_shown_beside_sacrebleu(tmp_path, capsys):
    (tmp_path / "out").write_text("Das Rock-Festival war sehr gut besucht.\n")
    (tmp_path / "reference").write_text("Das Rock-Konzert war sehr gut besucht.\n")
    files = "--hypothesis", tmp_path / "out", tmp_path / "reference"
    status, printed, said = run(capsys, "evaluate", *files, "--paper-bleu", "de")
    assert status == 0, said
    wanted = paper_bleu("de")(
        *([(tmp_path / name).read_text().strip()] for name in ("out", "reference"))
    )
    assert f"BLEU as in the paper, tokenised and with compounds split: {wanted:.2f}" in printed
    assert "tok:13a" in printed


def test_nothing_to_score():
    with pytest.raises(UserError, match="1 hypotheses but 2 references"):
        paper_bleu("de")(["a"], ["a", "b"])

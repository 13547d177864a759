"""Validations: the same sentences, whatever other directions a model has."""

import pytest

from transduce.config.schema import RunConfig
from transduce.evaluation import evaluate
from transduce.text.pairs import Origin, Pair


class Into:
    """A tokenizer for any target language."""

    def into(self, _target: str) -> "Into":
        return self


@pytest.mark.parametrize("count", [1, 2, 12])
def test_final_scores_use_as_many_sentences_as_one_direction(monkeypatch, count):
    # Private, since to translate so many sentences only to count them would take minutes.
    monkeypatch.setattr(
        evaluate, "_validation", lambda _tokenizer, _pairs, _config, sentences: lambda _: sentences
    )
    names = ["en-de"] if count == 1 else [f"l{number}-en" for number in range(count)]
    pairs = [Pair("a", "b", Origin("", 1), direction=name) for name in names for _ in range(600)]
    made = [
        evaluate.validations(Into(), pairs, RunConfig(), is_final=each)(None)
        for each in (False, True)
    ]
    assert [{*found.values()} for found in made] == [{max(50, 500 // count)}, {500}]

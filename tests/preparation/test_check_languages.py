"""Texts in another language of the model than their label says."""

import pytest

from transduce.config.schema import CorpusConfig, DataConfig
from transduce.preparation.check_languages import check_languages
from transduce.preparation.passes import read_part
from transduce.preparation.staging import StagedPairs
from transduce.system.errors import UserError
from transduce.text.pairs import Origin, Pair
from transduce.wings.phrasebook.examples import examples

pytest.importorskip("py3langid", reason="pip install 'transduce[doctor]'")
PAIRS = [(each.english, each.german) for each in examples("train", 60)]
ENGLISH, GERMAN = (
    [text for text in side if len(text) > 20][:30] for side in zip(*PAIRS, strict=True)
)


def check(tmp_path, *sides: tuple[list[str], list[str]], directions: tuple[str, ...] = ()) -> None:
    """Check corpora of English and German texts, in this order."""
    staged: list[list[StagedPairs]] = []
    corpora = tuple(CorpusConfig((f"{number}.en", f"{number}.de")) for number in range(len(sides)))
    data = DataConfig(source="en", target="de", holdout=0, corpora=corpora, directions=directions)
    for number, side in enumerate(sides):
        pairs = [Pair(a, b, Origin("", i)) for i, (a, b) in enumerate(zip(*side, strict=True))]
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}-{number}"
        staged.append([read_part(iter(pairs), data, folder)])
    check_languages(data, staged)


def test_both_sides_in_the_wrong_language_are_an_error(tmp_path, capsys):
    check(tmp_path, (ENGLISH, GERMAN), (ENGLISH, GERMAN))
    assert not capsys.readouterr().err
    with pytest.raises(UserError, match=r"1.en \+ 1.de: 100% of the texts in en look like another"):
        check(tmp_path, (ENGLISH, GERMAN), (GERMAN, ENGLISH))


def test_one_side_is_a_warning_or_in_a_multilingual_model_an_error(tmp_path, capsys):
    check(tmp_path, (ENGLISH, ENGLISH[::-1]))
    said = " ".join(capsys.readouterr().err.split())
    assert "Warning: 0.en + 0.de: 100% of the texts in de look like another language" in said
    assert said.count("Warning") == 1
    with pytest.raises(UserError, match="100% of the texts in de look like another language"):
        check(tmp_path, (ENGLISH, ENGLISH[::-1]), directions=("en-de",))
    check(tmp_path, (ENGLISH[:19], ENGLISH[1:20]), directions=("en-de",))

"""The examples that the package contains."""

from transduce.wings.phrasebook.examples import examples
from transduce_lab.parsing.trees import parse_trees


def test_the_parts_have_their_sizes_and_no_sentence_in_common() -> None:
    train, valid, test = (
        [example.english for example in examples(part)] for part in ("train", "valid", "test")
    )
    assert (len(train), len(valid), len(test)) == (40_000, 300, 500)
    assert len({*train, *valid, *test}) == 40_800


def test_an_example_has_two_sentences_and_a_tree() -> None:
    first = next(examples("train"))
    assert (first.english, first.german) == ("It is raining now.", "Es regnet jetzt.")
    [(tree, _)] = parse_trees([first.tree])
    assert tree.words() == ["It", "is", "raining", "now", "."]


def test_marks_and_possessives_stand_behind_a_word_without_a_space() -> None:
    english = [example.english for example in examples("train", 2000)]
    assert not any(" ," in text or " ." in text or " ?" in text or " '" in text for text in english)
    assert any("'s " in text for text in english) and any("," in text for text in english)

"""The files of a multilingual corpus, by hand."""

import pytest

from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.text.multilingual import (
    BilingualCorpus,
    bilingual_corpora,
    directions_in,
    is_multilingual,
    without_labels,
)


def named(*files: str) -> list[tuple[tuple[str, ...], str]]:
    return [(corpus.files, str(corpus.languages)) for corpus in bilingual_corpora(files)]


def test_files_whose_names_differ_in_the_language_alone_are_aligned():
    assert named("x/train.en", "x/train.de", "y/train.fr", "y/train.en", "x/train.fr") == [
        (("x/train.en", "x/train.de"), "en-de"),
        (("x/train.en", "x/train.fr"), "en-fr"),
        (("x/train.de", "x/train.fr"), "de-fr"),
        (("y/train.fr", "y/train.en"), "fr-en"),
    ]
    assert named("a.en.tok.gz", "b.de.gz", "a.pt-BR.tok.gz", "b.en.gz") == [
        (("a.en.tok.gz", "a.pt-BR.tok.gz"), "en-pt_BR"),
        (("b.de.gz", "b.en.gz"), "de-en"),
    ]
    # The last code counts; the first part of a name is no code.
    assert named("news.en.de", "news.en.fr") == [(("news.en.de", "news.en.fr"), "de-fr")]
    assert named("a.x.en.gz", "a.y.de.gz", "a.x.de.gz", "a.y.en.gz") == [
        (("a.x.en.gz", "a.x.de.gz"), "en-de"),
        (("a.y.de.gz", "a.y.en.gz"), "de-en"),
    ]
    assert named("en.de", "en.fr") == [(("en.de", "en.fr"), "de-fr")]
    with pytest.raises(UserError, match=r"The language of de is unknown.* as train.en"):
        named("de", "en")
    with pytest.raises(UserError, match=r"a.en: there is no file of the same text in another"):
        named("a.en", "b.en", "b.de")
    with pytest.raises(UserError, match=r"x.pt_BR and x.pt-BR are files of the same text"):
        named("x.pt_BR", "x.pt-BR")


def test_labels_name_the_languages_of_a_file():
    assert named("en,de=a.tsv", "en,pt-BR,fr=x=y.tmx") == [
        (("a.tsv",), "en-de"),
        (("x=y.tmx",), "en-pt_BR"),
        (("x=y.tmx",), "en-fr"),
        (("x=y.tmx",), "pt_BR-fr"),
    ]
    assert without_labels(["en,de=a.tsv", "b.en", "x=c.tsv"]) == ["a.tsv", "b.en", "x=c.tsv"]
    with pytest.raises(UserError, match=r"en,de,en=a\.tsv names a language twice"):
        named("en,de,en=a.tsv")


@pytest.mark.parametrize("name", ["x.tsv", "x.jsonl", "x"])
def test_a_bilingual_file_or_a_folder_needs_a_label(name, tmp_path):
    if name == "x":
        name = str(tmp_path)
    with pytest.raises(
        UserError, match=r"is unknown\. Write its language codes first, such as en,de"
    ):
        named(name)


def test_a_folder_has_the_files_of_each_target(tmp_path):
    for name in ("de/a.po", "de/b/c.po", "fr/a.po", "pt-BR.po", "x.fr.tsv", "fr.txt", "en/a.po"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def own(*names: str) -> tuple[str, ...]:
        return tuple(str(tmp_path / name) for name in names)

    assert named(f"en,de,fr,pt_BR={tmp_path}") == [
        (own("de/a.po", "de/b/c.po"), "en-de"),
        (own("fr/a.po", "x.fr.tsv"), "en-fr"),
        (own("pt-BR.po"), "en-pt_BR"),
    ]
    assert named(f"de,en={tmp_path}") == [(own("en/a.po"), "de-en")]
    assert named(f"en,it={tmp_path}") == [((str(tmp_path),), "en-it")]  # all files
    with pytest.raises(
        UserError, match=r"has no bilingual files in a folder it, and no files it.po"
    ):
        named(f"en,de,it={tmp_path}")


def test_more_than_two_texts_of_known_languages_are_multilingual():
    assert is_multilingual(["a.en", "a.de", "a.fr"]) and is_multilingual(["a.en", "b,c=a.tsv"])
    for files in (
        ["a.en", "a.de"],
        ["a.en", "a.de", "a.txt"],
        ["a.en", "a.de", "a.fr.tsv"],
        ["en", "de", "fr"],
        [],
    ):
        assert not is_multilingual(files)


def test_directions_by_hand():
    corpora = [
        BilingualCorpus(("x",), Direction(*pair.split("-"))) for pair in ("en-de", "en-fr", "de-en")
    ]
    assert list(map(str, directions_in(corpora))) == ["en-de", "de-en", "en-fr", "fr-en"]
    assert list(map(str, directions_in(corpora, ["en"]))) == ["en-de", "en-fr"]
    assert list(map(str, directions_in(corpora, [], ["en"]))) == ["de-en", "fr-en"]
    assert list(map(str, directions_in(corpora, ["de", "fr"], ["en"]))) == ["de-en", "fr-en"]
    brazil = [BilingualCorpus(("x",), Direction("en", "pt_BR"))]
    assert list(map(str, directions_in(brazil, ["pt-BR"]))) == ["pt_BR-en"]
    for sources, targets in ((["it"], []), ([], ["it"])):
        with pytest.raises(
            UserError, match=r"No corpus has the language 'it'\. Choose one of en, de, fr"
        ):
            directions_in(corpora, sources, targets)
    with pytest.raises(UserError, match="No corpus has a pair from de to fr"):
        directions_in(corpora, ["de"], ["fr"])

"""Replaces the unknown words in translations of a model with a vocabulary of words (PosUnk).

Each becomes the translation of its source word, by word alignment of the training text, or a copy of its source word
(Luong et al., 2015). The source word is the word with the strongest attention, as in Jean et al. (2015).
"""

from collections.abc import Iterable, Mapping, Sequence

from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import Translation
from transduce.evaluation.evaluate import direction_of
from transduce.model_folder import Bundle
from transduce.text.pairs import Pair, read_pairs
from transduce.wings.terms.glossary import spans_of
from transduce.wings.terms.lexicon import Lexicon, Word
from transduce_lab.words import UNKNOWN_WORD, WordVocabulary


def with_known_words(
    models: Sequence[Bundle], pairs: Sequence[Pair], translations: Sequence[Translation]
) -> list[str]:
    """The texts of translations; with a vocabulary of words, their unknown words are replaced."""
    texts = [translation.text for translation in translations]
    places = [place for place, text in enumerate(texts) if UNKNOWN_WORD in text]
    tokenizer = models[0].tokenizer
    if not places or not isinstance(tokenizer.target, WordVocabulary):
        return texts
    config = models[0].config
    corpora = (
        read_pairs(each.files, (config.data.source, config.data.target))
        for each in config.data.corpora
    )
    dictionary = dictionary_of((pair.source, pair.target) for corpus in corpora for pair in corpus)
    engine = TorchEngine([model.model for model in models])
    translator = Translator(
        engine, tokenizer, config.decode, directions=[direction_of(pairs, config.data)]
    )
    sources = [pairs[place].source for place in places]
    aligned = translator.translate(sources, align=True)
    for place, source, translation in zip(places, sources, aligned, strict=True):
        texts[place] = fill_unknown(source, translation, dictionary)
    return texts


def fill_unknown(source: str, translation: Translation, dictionary: Mapping[str, str]) -> str:
    """The text of a translation with links, with the translation or a copy of the linked word for each UNKNOWN_WORD.

    This is PosUnk (Luong et al., 2015; Jean et al., 2015), with the strongest attention as the alignment.
    """
    text = translation.text
    for place in reversed([place for place, each in enumerate(text) if each == UNKNOWN_WORD]):
        linked = [link for link in translation.links if link.target[0] <= place < link.target[1]]
        best = max(linked, key=lambda link: link.weight, default=None)
        word = source[slice(*best.source)] if best else ""
        text = text[:place] + dictionary.get(word, word) + text[place + 1 :]
    return text


def dictionary_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The most probable translation of each word that has one, by word alignment."""

    def words(text: str) -> list[Word]:
        return [Word(text[slice(*span)], span) for span in spans_of(text)]

    lexicon = Lexicon((words(source), words(target)) for source, target in pairs)
    return {word: max(its, key=its.__getitem__) for word, its in lexicon.translations.items()}

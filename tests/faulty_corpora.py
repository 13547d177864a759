"""Pairs with faults for the doctor and its rules."""

from hypothesis import strategies as st

from transduce.text.pairs import Origin, Pair

odd = st.sampled_from(
    ["Ã¤", "\ufffd", "\x02", "{0}", "<b>", "</b>", "%s", "12", "14", "\n", " ", "Ä", "ß“", "1.000"]
)


odd_texts = st.lists(odd | st.text(st.characters(codec="utf-8"), max_size=3), max_size=5).map(
    "".join
)


def pairs_of(texts: list[tuple[str, str]], file: str = "corpus.tsv") -> list[Pair]:
    return [
        Pair(source, target, Origin(file, line))
        for line, (source, target) in enumerate(texts, start=1)
    ]

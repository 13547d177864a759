"""The generator of the phrasebook: its sentences, trees, alignments and hold-out, and German by hand."""

import bz2
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

import phrasebook
import write_phrasebook
from phrasebook import (
    Clause,
    Example,
    NounPhrase,
    Sentence,
    build,
    grammar,
    inflection,
    lexicon,
    split,
    stream,
    tokens,
    withheld,
)
from phrasebook.draw_clauses import tenses_of
from phrasebook.lexicon import NOUNS, PEOPLE, TIMES, VERBS, adjectives_of, members
from transduce.wings.phrasebook import examples

I, YOU, HE, SHE, WE, THEY = (NounPhrase(head) for head in ("I", "you", "he", "she", "we", "they"))  # noqa: E741


def the(head: str, adjective: str = "", determiner: str = "the") -> NounPhrase:
    return NounPhrase(head, determiner, adjective=adjective)


def some(head: str, determiner: str = "", adjective: str = "") -> NounPhrase:
    return NounPhrase(head, determiner, plural=True, adjective=adjective)


MAN, WOMAN, BOOK, PETER, ANNA = (
    the("man"),
    the("woman"),
    the("book"),
    NounPhrase("Peter"),
    NounPhrase("Anna"),
)
MAN_WHO = MAN._replace(relative=Clause("live", "present", None, place=NounPhrase("Berlin")))
MAN_WHOM = MAN._replace(relative=Clause("help", "past", the("girl")))
BOOK_THAT = BOOK._replace(relative=Clause("buy", "past", WOMAN))

BY_HAND = [
    (  # strong, mixed and weak adjectives; accusative
        Sentence(
            "statement", Clause("buy", "progressive", the("man", "old"), the("car", "new", "a"))
        ),
        "The old man is buying a new car.",
        "Der alte Mann kauft ein neues Auto.",
    ),
    (
        Sentence(
            "statement",
            Clause("drink", "present", HE, the("coffee", "cold", ""), frequency="often"),
        ),
        "He often drinks cold coffee.",
        "Er trinkt oft kalten Kaffee.",
    ),
    (  # a before a vowel
        Sentence("statement", Clause("eat", "future", I, the("apple", "", "a"), time="tomorrow")),
        "I will eat an apple tomorrow.",
        "Ich werde morgen einen Apfel essen.",
    ),
    (  # weak nouns
        Sentence("statement", Clause("ask", "past", the("boy"), the("student"))),
        "The boy asked the student.",
        "Der Junge hat den Studenten gefragt.",
    ),
    (  # dative plural, numerals, perfect with sein
        Sentence(
            "statement",
            Clause("follow", "past", some("cat", "two", "black"), some("child", "the", "small")),
        ),
        "Two black cats followed the small children.",
        "Zwei schwarze Katzen sind den kleinen Kindern gefolgt.",
    ),
    (  # dative verb, possessive
        Sentence("statement", Clause("help", "present", SHE, the("grandmother", "", "her"))),
        "She helps her grandmother.",
        "Sie hilft ihrer Großmutter.",
    ),
    (  # two objects
        Sentence(
            "statement",
            Clause("give", "past", WOMAN, the("gift", "", "a"), the("child"), time="today"),
        ),
        "The woman gave the child a gift today.",
        "Die Frau hat dem Kind heute ein Geschenk gegeben.",
    ),
    (  # separable, in a main clause
        Sentence(
            "statement",
            Clause(
                "pick up", "present", the("father", "", "my"), NounPhrase("she"), time="every day"
            ),
        ),
        "My father picks her up every day.",
        "Mein Vater holt sie jeden Tag ab.",
    ),
    (  # verb second after a fronted time
        Sentence("fronted", Clause("get up", "past", PETER, manner="slowly"), time="yesterday"),
        "Yesterday Peter got up slowly.",
        "Gestern ist Peter langsam aufgestanden.",
    ),
    (  # verb last, separable
        Sentence(
            "because",
            Clause("be", subject=ANNA, predicate="happy"),
            Clause("arrive", "progressive", PETER),
        ),
        "Anna is happy because Peter is arriving.",
        "Anna ist glücklich, weil Peter ankommt.",
    ),
    (  # a clause first
        Sentence(
            "if_first",
            Clause("read", "future", WE, BOOK),
            Clause("rain", "present", NounPhrase("it")),
        ),
        "If it rains, we will read the book.",
        "Wenn es regnet, werden wir das Buch lesen.",
    ),
    (  # kein
        Sentence("statement", Clause("have", "present", HE, the("dog", "", "a"), negated=True)),
        "He does not have a dog.",
        "Er hat keinen Hund.",
    ),
    (
        Sentence("statement", Clause("eat", "present", I, the("meat", "", ""), negated=True)),
        "I do not eat meat.",
        "Ich esse kein Fleisch.",
    ),
    (  # nicht after a known object, and before a place
        Sentence("statement", Clause("understand", "past", THEY, the("question"), negated=True)),
        "They did not understand the question.",
        "Sie haben die Frage nicht verstanden.",
    ),
    (
        Sentence(
            "statement",
            Clause("work", "progressive", SHE, place=the("hospital"), time="today", negated=True),
        ),
        "She is not working in the hospital today.",
        "Sie arbeitet heute nicht im Krankenhaus.",
    ),
    (  # modal verbs and their negations
        Sentence("statement", Clause("sleep", "can", I, negated=True)),
        "I cannot sleep.",
        "Ich kann nicht schlafen.",
    ),
    (
        Sentence("statement", Clause("open", "must_not", YOU, the("window"), negated=True)),
        "You must not open the window.",
        "Du darfst das Fenster nicht öffnen.",
    ),
    (
        Sentence("statement", Clause("wait", "have_to", HE, negated=True)),
        "He does not have to wait.",
        "Er muss nicht warten.",
    ),
    (
        Sentence(
            "question", Clause("visit", "want", the("aunt", "", "your"), NounPhrase("Vienna"))
        ),
        "Does your aunt want to visit Vienna?",
        "Will deine Tante Wien besuchen?",
    ),
    (  # question words
        Sentence("who", Clause("call", "past", None, MAN)),
        "Who called the man?",
        "Wer hat den Mann angerufen?",
    ),
    (
        Sentence("whom_dative", Clause("trust", "present", THEY)),
        "Whom do they trust?",
        "Wem vertrauen sie?",
    ),
    (
        Sentence("which", Clause("read", "progressive", WOMAN), topic=the("book", "long", "which")),
        "Which long book is the woman reading?",
        "Welches lange Buch liest die Frau?",
    ),
    (
        Sentence("where_to", Clause("go", "past", some("student", "the"))),
        "Where did the students go to?",
        "Wohin sind die Studenten gegangen?",
    ),
    (  # reflexive, also before a nominal subject, with its preposition
        Sentence(
            "fronted",
            Clause("look forward to", "progressive", the("daughter", "", "our"), the("party")),
            time="today",
        ),
        "Today our daughter is looking forward to the party.",
        "Heute freut sich unsere Tochter auf das Fest.",
    ),
    (  # a pronoun before a nominal subject, after a pronoun
        Sentence("fronted", Clause("help", "past", WOMAN, HE), time="yesterday"),
        "Yesterday the woman helped him.",
        "Gestern hat ihm die Frau geholfen.",
    ),
    (
        Sentence("question", Clause("visit", "future", YOU, I, time="tomorrow")),
        "Will you visit me tomorrow?",
        "Wirst du mich morgen besuchen?",
    ),
    (  # relative clauses: subject, dative, and after the end of the clause
        Sentence("statement", Clause("buy", "progressive", MAN_WHO, the("hat", "red", "a"))),
        "The man who lives in Berlin is buying a red hat.",
        "Der Mann, der in Berlin wohnt, kauft einen roten Hut.",
    ),
    (
        Sentence("statement", Clause("smile", "past", MAN_WHOM)),
        "The man whom the girl helped smiled.",
        "Der Mann, dem das Mädchen geholfen hat, hat gelächelt.",
    ),
    (
        Sentence("statement", Clause("read", "can", HE, BOOK_THAT)),
        "He can read the book that the woman bought.",
        "Er kann das Buch lesen, das die Frau gekauft hat.",
    ),
    (  # where, and where to
        Sentence(
            "statement",
            Clause("lie", "progressive", the("cat"), place=the("table"), preposition="under"),
        ),
        "The cat is lying under the table.",
        "Die Katze liegt unter dem Tisch.",
    ),
    (
        Sentence(
            "statement",
            Clause("lay", "past", SHE, the("key"), place=the("table"), preposition="on"),
        ),
        "She laid the key on the table.",
        "Sie hat den Schlüssel auf den Tisch gelegt.",
    ),
    (
        Sentence(
            "statement", Clause("drive", "future", WE, place=the("station"), manner="quickly")
        ),
        "We will drive to the station quickly.",
        "Wir werden schnell zum Bahnhof fahren.",
    ),
    (  # zu
        Sentence(
            "statement",
            Clause(
                "try to", "past", HE, complement=Clause("turn off", "present", HE, the("radio"))
            ),
        ),
        "He tried to turn off the radio.",
        "Er hat versucht, das Radio auszuschalten.",
    ),
    (  # that
        Sentence(
            "statement",
            Clause("know that", "present", I, complement=Clause("come back", "future", PETER)),
        ),
        "I know that Peter will come back.",
        "Ich weiß, dass Peter zurückkommen wird.",
    ),
    (  # to be
        Sentence("statement", Clause("be", "present", HE, the("teacher", "", "a"))),
        "He is a teacher.",
        "Er ist Lehrer.",
    ),
    (
        Sentence("statement", Clause("be", "present", the("dog"), the("cat"), predicate="big")),
        "The dog is bigger than the cat.",
        "Der Hund ist größer als die Katze.",
    ),
    (
        Sentence(
            "statement",
            Clause("be", "past", the("ship"), predicate="expensive", degree="very", negated=True),
        ),
        "The ship was not very expensive.",
        "Das Schiff war nicht sehr teuer.",
    ),
    (  # a game stays beside its verb
        Sentence(
            "statement",
            Clause(
                "play",
                "past",
                HE,
                NounPhrase("chess"),
                place=NounPhrase("park", "the"),
                manner="well",
            ),
        ),
        "He played chess well in the park.",
        "Er hat im Park gut Schach gespielt.",
    ),
    (  # genitive
        Sentence(
            "statement",
            Clause(
                "repair", "past", PETER, NounPhrase("roof", "the", rule="part", owner=the("house"))
            ),
        ),
        "Peter repaired the roof of the house.",
        "Peter hat das Dach des Hauses repariert.",
    ),
    (
        Sentence(
            "statement", Clause("find", "past", WE, NounPhrase("key", rule="names", owner=ANNA))
        ),
        "We found Anna's key.",
        "Wir haben Annas Schlüssel gefunden.",
    ),
    (  # imperative
        Sentence("command", Clause("read", "present", YOU, the("letter", "short"))),
        "Read the short letter!",
        "Lies den kurzen Brief!",
    ),
    (
        Sentence("please", Clause("invite", "present", YOU, the("neighbour"), negated=True)),
        "Please do not invite the neighbour.",
        "Bitte lade den Nachbarn nicht ein.",
    ),
]


def sentences(count: int, seed: int) -> list[Example]:
    """The first sentences of a stream."""
    return list(itertools.islice(stream(seed), count))


@pytest.fixture(scope="module")
def sample() -> list[Example]:
    return sentences(2000, seed=5)


@pytest.fixture(scope="module")
def shipped() -> dict[str, list[examples.Example]]:
    return {part: list(examples.examples(part)) for part in ("train", "valid", "test")}


@pytest.mark.parametrize(("derivation", "english", "german"), BY_HAND)
def test_by_hand(derivation: Sentence, english: str, german: str) -> None:
    example = build(derivation)
    assert (example.english, example.german) == (english, german)


def test_tree_and_alignment_by_hand() -> None:
    example = build(
        Sentence(
            "statement", Clause("pick up", "past", the("boy", "curious"), the("friend", "", "a"))
        )
    )
    assert example.tree == (
        "(S (NP (DT The) (JJ curious) (NN boy)) (VP (VBD picked) (PRT (RP up)) (NP (DT a) (NN friend))) (. .))"
    )
    assert tokens(example.german) == [
        "Der",
        "neugierige",
        "Junge",
        "hat",
        "einen",
        "Freund",
        "abgeholt",
        ".",
    ]
    expected = {(0, 0), (1, 1), (2, 2), (3, 3), (3, 6), (4, 3), (4, 6), (5, 4), (6, 5)}
    assert set(example.alignment) == expected


def test_the_same_seed_gives_the_same_sentences(sample: list[Example]) -> None:
    assert sentences(300, seed=5) == sample[:300]
    assert sentences(300, seed=6) != sample[:300]
    assert len({example.english for example in sample}) == len(sample)


def clauses(example: Example) -> Iterator[Clause]:
    """Every clause of a derivation."""
    waiting = [example.derivation.main, example.derivation.other]
    while waiting:
        if (clause := waiting.pop()) is not None:
            yield clause
            phrases = (clause.subject, clause.object)
            waiting += [clause.complement, *(phrase.relative for phrase in phrases if phrase)]


def phenomena(example: Example) -> Iterator[str]:
    """What a sentence shows, read off its German surface where that is possible."""
    german, english = tokens(example.german), tokens(example.english)
    yield from (
        word
        for word in ("weil", "dass", "ob", "wenn", "obwohl", "während", "bevor")
        if word in map(str.lower, german)
    )
    yield from ("kein" for word in german if re.fullmatch("[Kk]ein(e[mnrs]?)?", word))
    yield from (word for word in ("nicht", "zu", "des", "als") if word in german)
    if example.english.endswith("?"):
        yield "yes-no question" if english[0] in ENGLISH_FINITE else "question word"
    if example.english.endswith("!"):
        yield "imperative"
    yield from ["relative clause"] * ("relative=Clause" in repr(example.derivation))
    for clause in clauses(example):
        verb = clause.entry
        perfect = clause.tense in ("past", "perfect") and not verb.preterite
        yield from ["separable"] * bool(verb.particle) + ["reflexive"] * bool(verb.reflexive)
        yield from ["dative verb"] * (verb.frame == "dative") + ["two objects"] * (
            verb.frame == "ditransitive"
        )
        yield from [f"perfect with {verb.auxiliary or 'haben'}"] * perfect + ["future"] * (
            clause.tense == "future"
        )
        yield from (
            ["modal"] * (clause.tense in MODAL)
            + ["time"] * bool(clause.time)
            + ["manner"] * bool(clause.manner)
        )
        yield from ["place"] * bool(clause.place)


ENGLISH_FINITE = {
    "Do",
    "Does",
    "Did",
    "Is",
    "Am",
    "Are",
    "Was",
    "Were",
    "Has",
    "Have",
    "Will",
    "Can",
    "Must",
    "Should",
} | {"Would"}
MODAL = (
    "can",
    "must",
    "must_not",
    "should",
    "want",
    "wanted",
    "would_like",
    "allowed",
    "had_to",
    "have_to",
)
AT_LEAST = {
    "weil": 50, "dass": 20, "ob": 10, "wenn": 60, "obwohl": 60, "während": 25, "bevor": 25, "kein": 60, "nicht": 120,
    "zu": 10, "des": 15, "als": 10, "yes-no question": 100, "question word": 200, "imperative": 25,
    "relative clause": 60, "separable": 150, "reflexive": 100, "dative verb": 100, "two objects": 60,
    "perfect with sein": 80, "perfect with haben": 400, "future": 150, "modal": 150, "time": 200, "manner": 100,
    "place": 200,
}  # fmt: skip


def test_every_phenomenon_occurs(sample: list[Example]) -> None:
    found = Counter(name for example in sample for name in set(phenomena(example)))
    assert {name: found[name] for name, least in AT_LEAST.items() if found[name] < least} == {}


def test_verbs_stand_where_they_belong(sample: list[Example]) -> None:
    """After weil, dass, ob and obwohl nothing follows the finite verb; in a statement it comes second."""
    finite = {form for forms in grammar.AUXILIARIES.values() for form in forms}
    for name, verb in VERBS.items():
        finite |= {*inflection.present(name), *inflection.preterite(name)}
        finite |= {verb.particle + form for form in inflection.present(name)}
    for example in sample:
        for part in re.findall(
            r"\b(?:[Ww]eil|dass|ob|[Oo]bwohl|bevor|während|[Ww]enn) ([^,.?!]*)", example.german
        ):
            assert part.split()[-1] in finite, example.german


def test_leaves_of_the_tree_are_the_tokens(sample: list[Example]) -> None:
    for example in sample:
        assert re.findall(r" ([^\s()]+)\)", example.tree) == tokens(example.english)
        depths = [
            example.tree[: i + 1].count("(") - example.tree[: i + 1].count(")")
            for i in range(len(example.tree))
        ]
        assert min(depths[:-1]) > 0 and depths[-1] == 0
        assert all(
            re.fullmatch(r"[A-Z$]+|[.,]", label) for label in re.findall(r"\((\S+)", example.tree)
        )


def test_alignment_covers_every_content_word(sample: list[Example]) -> None:
    for example in sample:
        english, german = tokens(example.english), tokens(example.german)
        assert all(i < len(english) and j < len(german) for i, j in example.alignment)
        tags = re.findall(r"\((\S+) [^\s()]+\)", example.tree)
        content = {i for i, tag in enumerate(tags) if re.match("NN|VB|JJ|RB|PRP|CD|MD|WP|WRB", tag)}
        assert content <= {i for i, _ in example.alignment}, (example.english, example.german)
        nouns = {j for j, word in enumerate(german) if j and word[0].isupper()}
        assert nouns <= {j for _, j in example.alignment}, (example.english, example.german)


def test_translation_is_a_function(
    shipped: dict[str, list[examples.Example]], sample: list[Example]
) -> None:
    german: dict[str, str] = {}
    for example in [*shipped["train"], *shipped["valid"], *shipped["test"], *sample]:
        assert german.setdefault(example.english, example.german) == example.german


def test_spelling(sample: list[Example]) -> None:
    for example in sample:
        for text in (example.english, example.german):
            assert re.fullmatch(r"[A-ZÄÖÜ][^.?!]*[.?!]", text)
            assert "  " not in text and " ," not in text and ",," not in text
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]|\b[Ii] [a-z]+s not\b", example.english)
        assert len(tokens(example.english)) <= phrasebook.MAX_SENTENCE_TOKENS


def test_withheld_combinations_are_never_in_training() -> None:
    train, held_out = split(3000, 400, seed=3)
    assert (len(train), len(held_out)) == (3000, 400)
    assert not any(withheld(pair) for example in train for pair in example.combinations)
    assert all(any(map(withheld, example.combinations)) for example in held_out)
    assert {example.english for example in train}.isdisjoint(
        example.english for example in held_out
    )
    pairs = {pair for example in train + held_out for pair in example.combinations}
    assert 0.05 < sum(map(withheld, pairs)) / len(pairs) < 0.10


def test_every_word_is_known_from_training(shipped: dict[str, list[examples.Example]]) -> None:
    train, held_out = shipped["train"], shipped["valid"] + shipped["test"]
    seen = {word for example in train for word in tokens(example.german)}
    words = [word for example in held_out for word in tokens(example.german)]
    # Rare inflections of known words.
    assert sum(word not in seen for word in words) < 0.004 * len(words)
    english = Counter(word.lower() for example in train for word in tokens(example.english))
    for lemma in lemmas():
        forms = lemma_forms(lemma)
        assert sum(english[form] for form in forms) >= 20, lemma


def lemma_forms(lemma: str) -> set[str]:
    """The English tokens that the first word of a lemma can be."""
    word = lemma.split()[0]
    forms = {word.lower()}
    if lemma in VERBS:
        forms |= set(VERBS[lemma].forms.values()) | ({"am", "are"} if lemma == "be" else set())
    if lemma in NOUNS:
        forms |= {NOUNS[lemma].plural}
    return forms


def lemmas() -> list[str]:
    """Every entry of the lexicon, once per English word or phrase and kind."""
    adverbs = (lexicon.MANNERS, lexicon.FREQUENCIES, lexicon.DEGREES, lexicon.PREPOSITIONS, TIMES)
    tables = (NOUNS, VERBS, lexicon.PRONOUNS, lexicon.DETERMINERS, lexicon.ADJECTIVES, *adverbs)
    return [name for table in tables for name in table]


def distinct_sentences() -> int:
    """A lower bound: "The <adjective> <person> <past tense> the <adjective> <noun> <time>." with transitive verbs.

    Each choice is read back from its own place in the English sentence, so no two of these are the same.
    """

    def described(heads: Iterable[str], but: set[str]) -> int:
        return sum(len(adjectives_of(head)) for head in heads if not NOUNS[head].tags & but)

    total = 0
    for name, verb in VERBS.items():
        if verb.frame == "transitive" and not verb.state and "past" in tenses_of(name):
            people = [who for who in members(PEOPLE) if NOUNS[who].tags & verb.classes["subject"]]
            things = members(verb.classes["object"])
            total += described(people, {"kin"}) * described(things, {"person", "bare", "alcohol"})
    return total * sum("past" in time.goes_with for time in TIMES.values())


def test_size() -> None:
    rules = (grammar.SENTENCE_RULES, grammar.FRAMES, grammar.TENSES, grammar.NOUN_PHRASES)
    assert len(lemmas()) >= 300
    assert sum(map(len, rules)) >= 40
    assert distinct_sentences() >= 10**7


def test_the_package_begins_with_what_is_generated() -> None:
    train, held_out = split(300, 30, seed=write_phrasebook.SEED)
    for part, expected in (("train", train), ("valid", held_out)):
        found = [tuple(example) for example in examples.examples(part, len(expected))]
        assert found == [(example.english, example.german, example.tree) for example in expected]


@pytest.mark.slow
def test_the_package_has_exactly_what_is_generated() -> None:
    for part, text in write_phrasebook.texts().items():
        assert (
            bz2.decompress((write_phrasebook.FOLDER / f"{part}.tsv.bz2").read_bytes()).decode()
            == text
        )

"""Parameter files of EVALB (Sekine and Collins, 1997; Ellis, 2006), such as COLLINS.prm for the Wall Street Journal."""

from dataclasses import dataclass

from transduce.system.errors import UserError
from transduce.text.plain import read_lines, without_byte_order_mark


@dataclass(frozen=True)
class Parameters:
    """EVALB's parameters. The defaults are COLLINS.prm's, except that the labels "", ROOT and S1 are deleted, too."""

    labelled: bool = True
    cutoff: int = 40  # maximum number of words of a short sentence
    deleted: frozenset[str] = frozenset(
        ("TOP", "", "ROOT", "S1", "-NONE-", ",", ":", "``", "''", ".")
    )
    deleted_for_length: frozenset[str] = frozenset(("-NONE-",))
    equal_labels: frozenset[tuple[str, str]] = frozenset((("ADVP", "PRT"),))
    equal_words: frozenset[tuple[str, str]] = frozenset()

    def same_label(self, one: str, other: str) -> bool:
        """Whether two labels or two tags are equal or declared equal by the parameter file."""
        return (
            one == other or (one, other) in self.equal_labels or (other, one) in self.equal_labels
        )

    def same_word(self, one: str, other: str) -> bool:
        """Whether two words are equal or declared equal by the parameter file."""
        return one == other or (one, other) in self.equal_words or (other, one) in self.equal_words

    def deletes(self, label: str) -> bool:
        """Whether brackets with this label are ignored."""
        return any(self.same_label(label, deleted) for deleted in self.deleted)


COLLINS = Parameters()


def read_parameters(file: str) -> Parameters:
    """Read a parameter file; raises UserError for a line that is not a parameter."""
    sets: dict[str, set[str]] = {
        "DELETE_LABEL": set(),
        "DELETE_LABEL_FOR_LENGTH": set(),
    }
    pairs: dict[str, set[tuple[str, str]]] = {"EQ_LABEL": set(), "EQ_WORD": set()}
    # DEBUG and MAX_ERROR don't affect scores.
    numbers = {
        "LABELED": 1,
        "CUTOFF_LEN": 40,
        "DEBUG": 0,
        "MAX_ERROR": 10,
    }
    for number, line in enumerate(without_byte_order_mark(read_lines(file)), start=1):
        if line.startswith("#") or len(line.strip()) < 3:
            continue
        name, *values = line.split()
        if name in sets and len(values) == 1:
            sets[name].add(values[0])
        elif name in pairs and len(values) == 2:
            pairs[name].add((values[0], values[1]))
        elif name in numbers and len(values) == 1 and values[0].isdecimal() and len(values[0]) < 10:
            numbers[name] = int(values[0])
        else:
            known = ", ".join([*sets, *pairs, *numbers])
            raise UserError(
                f"{file}, line {number}: '{line.strip()}' is no parameter that is supported. Supported are {known}."
            )
    return Parameters(
        labelled=bool(numbers["LABELED"]),
        cutoff=numbers["CUTOFF_LEN"],
        deleted=frozenset(sets["DELETE_LABEL"]),
        deleted_for_length=frozenset(sets["DELETE_LABEL_FOR_LENGTH"]),
        equal_labels=frozenset(pairs["EQ_LABEL"]),
        equal_words=frozenset(pairs["EQ_WORD"]),
    )

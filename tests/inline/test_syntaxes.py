"""Each syntax of tags and placeholders finds its own examples among all the others."""

import re

import pytest

from transduce.inline.events import SYNTAXES, Syntax

# One group around each syntax, to see which one has matched; without and with those of messages.
ANY = [
    re.compile(
        " | ".join(
            f"(?P<syntax_{i}>{syntax.pattern})"
            for i, syntax in enumerate(SYNTAXES)
            if messages or not syntax.in_messages
        ),
        re.VERBOSE,
    )
    for messages in (False, True)
]
EXAMPLES = [
    pytest.param(syntax, example, id=f"{syntax.name} {example}")
    for syntax in SYNTAXES
    for example in syntax.examples
]


def finder(match: re.Match[str]) -> str:
    """The name of the syntax that has matched."""
    groups = match.groupdict()
    return next(
        syntax.name for i, syntax in enumerate(SYNTAXES) if groups.get(f"syntax_{i}") is not None
    )


@pytest.mark.parametrize(("syntax", "example"), EXAMPLES)
def test_a_syntax_finds_its_examples(syntax: Syntax, example: str) -> None:
    match = ANY[syntax.in_messages].search(example + syntax.after)
    assert match, "not found"
    assert match.group() == example
    assert finder(match) == syntax.name


def test_every_syntax_has_a_name_of_its_own_and_an_example() -> None:
    assert len({syntax.name for syntax in SYNTAXES}) == len(SYNTAXES)
    assert all(syntax.examples for syntax in SYNTAXES)

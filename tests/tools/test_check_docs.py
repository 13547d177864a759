"""`make lint` finds planted faults of the documentation, and names their lines."""

import ast
from pathlib import Path

import pytest

from check_docs import (
    check_code,
    check_command,
    check_links,
    check_targets,
    commands_of,
    strings_of,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "options.md"
FAULTS = {
    "a [link](missing.md)": "missing.md, which does not exist",
    "an [anchor](recipes.md#nowhere)": "no heading #nowhere",
    "a file `src/transduce/missing.py`": "src/transduce/missing.py does not exist",
    "a module `model/missing.py`": "model/missing.py does not exist",
    "```\ntransduce tranlate\n```": 'Unknown command "tranlate"',
    "```\nA=1 transduce translate \\\n a --owt b | cat\n```": "Unknown option: --owt",
    "```\ntransduce train … model.d_model=x\n```": "model.d_model must be a whole number",
    "```\n.venv/bin/transduce info MODEL --owt b\n```": "Unknown option: --owt",
    "```\nmake tset\n```": "no target tset",
    "```python\nfrom transduce import missing\n```": "no missing in `from transduce import missing`",
    "```python\nimport a b\n```": "not Python",
    "```toml\n[model]\nd_modl = 3\n```": "unknown option 'model.d_modl'",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_at_its_line(fault: str) -> None:
    text = f"# A page\n\n{fault}\n"
    found = [*check_links(PAGE, text), *check_code(PAGE, text), *check_targets(PAGE, text)]
    for command in commands_of(PAGE, text):
        found += check_command(command)
    assert [FAULTS[fault] in each.text for each in found] == [True]
    assert 3 <= found[0].line < 3 + len(fault.splitlines())


def test_strings_of_a_module_exclude_its_docstrings() -> None:
    text = 'def f(x):\n    """See --out."""\n    raise E(f"{x} exists. Name another by --out")\nHINT = "see above"\n'
    assert [*strings_of(ast.parse(text))] == [
        (3, "  exists. Name another by --out"),
        (4, "see above"),
    ]

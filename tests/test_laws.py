"""Laws of size and of names, each with its reason. The unit is the node of the syntax tree, so that dense writing gains
nothing."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILES = {
    path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
    for path in SOURCE.rglob("*.py")
}

# Read to know the system. A feature raises it by the budget that it states, and by nothing else.
MAX_CORE_NODES = 156_413
MAX_FUNCTION_NODES = 600  # a screen; more is more than one idea
LONGER_FUNCTIONS = {  # function -> why it is longer
    "transduce/inline/placeholders.py:cut": "moves every mark of a text to the part that it belongs to",
}


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in FILES.items()}


def num_nodes(tree: ast.AST) -> int:
    return sum(1 for _ in ast.walk(tree))


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every function with its number of nodes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, num_nodes(node)


def constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Every module constant with its value, as source text."""
    for node in tree.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        values = [node.value] if isinstance(node, ast.Assign | ast.AnnAssign) else []
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            value = values[0]
            parts = (
                value.elts
                if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple)
                else [value] * len(names)
            )
            for name, part in zip(names, parts, strict=False):
                if (
                    isinstance(name, ast.Name)
                    and name.id.isupper()
                    and name.id[0] != "_"
                    and part is not None
                ):
                    yield name.id, ast.unparse(part)


def homonyms(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Names of constants that have different values in different modules, with the modules."""
    values, places = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for file, tree in modules.items():
        for name, value in constants(tree):
            values[name].add(value)
            places[name].add(file)
    return {
        name: places[name] for name in values if len(values[name]) > 1 and len(places[name]) > 1
    }


def unrelated_values(node: ast.AST) -> bool:
    """Whether a statement assigns several values at once that are neither constants of one kind nor exchanged."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(node.value.elts):
        return False
    names = {ast.unparse(each) for each in target.elts}
    read = {ast.unparse(each) for each in ast.walk(node.value) if isinstance(each, ast.expr)}
    return not all(name.isupper() for name in names) and not names & read


def named_in_arguments(node: ast.AST) -> bool:
    """Whether an argument of a call is named by `:=`."""
    return isinstance(node, ast.Call) and any(
        isinstance(argument, ast.NamedExpr)
        for argument in [*node.args, *(each.value for each in node.keywords)]
    )


def repeated_by_truth(node: ast.AST) -> bool:
    """Whether a list or a text is multiplied by a truth value."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    sides = node.left, node.right
    is_repeated = any(
        isinstance(each, ast.List | ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in sides
    )
    return is_repeated and any(
        isinstance(each, ast.Compare | ast.BoolOp)
        or (isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not))
        or (isinstance(each, ast.Call) and ast.unparse(each.func) == "bool")
        for each in sides
    )


DENSE_FORMS = {
    "several values at once": unrelated_values,
    "a name inside a call": named_in_arguments,
    "a list times a truth value": repeated_by_truth,
}


@pytest.mark.parametrize("form", DENSE_FORMS)
def test_statements_do_one_thing(form: str) -> None:
    is_dense = DENSE_FORMS[form]
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("src", "tools", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if is_dense(node) and isinstance(node, ast.stmt | ast.expr)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("several values at once", "a, b = f(), g()"),
        ("a name inside a call", "f(a := 1)"),
        ("a list times a truth value", "[1] * (a > b)"),
    ],
)
def test_dense_forms_are_found(form: str, text: str) -> None:
    assert any(map(DENSE_FORMS[form], ast.walk(ast.parse(text))))


@pytest.mark.parametrize(
    "text", ["a, b = b, a", "LOW, HIGH = 1, 2", "a, b = f()", "if (a := f()): pass", "[1] * count"]
)
def test_plain_forms_are_accepted(text: str) -> None:
    assert not any(
        is_dense(node) for is_dense in DENSE_FORMS.values() for node in ast.walk(ast.parse(text))
    )


def test_the_core_stays_small() -> None:
    core = [
        tree
        for file, tree in trees().items()
        if not file.startswith(("transduce/wings/", "transduce_lab/"))
    ]
    assert sum(map(num_nodes, core)) <= MAX_CORE_NODES


def test_a_function_has_one_idea() -> None:
    counts = [
        (f"{file}:{name}", count)
        for file, tree in trees().items()
        for name, count in functions(tree)
    ]
    assert {name for name, count in counts if count > MAX_FUNCTION_NODES} == set(LONGER_FUNCTIONS)


def test_a_constant_means_the_same_everywhere() -> None:
    """A reader who meets MAX_TOKENS in two files may believe that they are one number."""
    # Add to the registries under their own names.
    plugins = (
        "transduce_lab/commands.py",
        "transduce_lab/registered.py",
    )
    assert homonyms({file: tree for file, tree in trees().items() if file not in plugins}) == {}


def test_a_homonym_is_found() -> None:
    modules = {
        "a.py": ast.parse("SIZE, X = 3, 1"),
        "b.py": ast.parse("SIZE: int = 4\nX = 1"),
        "c.py": ast.parse("SIZE = 3"),
    }
    assert homonyms(modules) == {"SIZE": {"a.py", "b.py", "c.py"}}

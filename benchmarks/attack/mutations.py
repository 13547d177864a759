"""Small faults in Python source, such as `<=` instead of `<` or a call that is left out: for mutants.py."""

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")
SWAPS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
_PAIRS = {
    "min": "max",
    "any": "all",
    "sum": "mean",
    "startswith": "endswith",
    "partition": "rpartition",
    "split": "rsplit",
    "find": "rfind",
    "minimum": "maximum",
}
OTHER_NAMES = _PAIRS | {new: old for old, new in _PAIRS.items()}
# Calls that can be left out: of a method, its object remains; of a function, its argument.
CHANGES = {"strip", "lstrip", "rstrip", "lower", "casefold", "removeprefix", "removesuffix"}
CHANGES |= {"sorted", "reversed", "set", "abs", "round"}
SYMMETRIC = {"min", "max", "minimum", "maximum"}  # in their arguments
MESSAGES = {
    "log",
    "print",
    "Hint",
    "UserError",
    "Refusal",
    "HTTPException",
    "RuntimeError",
    "ValueError",
    "TypeError",
}
GENERIC_TYPES = {"list", "dict", "set", "tuple", "defaultdict", "Counter", "OrderedDict", "deque"}
UNTESTED_NAMES = {"__repr__", "__str__"}


class Mutation(NamedTuple):
    """A fault: the text of a file between two byte offsets, and what replaces it."""

    line: int
    last_line: int
    begin: int
    end: int
    new: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.begin] + self.new.encode() + source[self.end :]


def mutations(source: bytes) -> Iterator[Mutation]:
    """All faults in functions, constants and fields, except in messages, annotations and formatted strings."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _nodes(ast.parse(source)):
        for old, new in _replacements(node):
            text = ast.unparse(new)
            if old.end_lineno and "\n" not in text and text != ast.unparse(old):
                begin = starts[old.lineno - 1] + old.col_offset
                end = starts[old.end_lineno - 1] + (old.end_col_offset or 0)
                text = text if isinstance(old, ast.stmt | ast.Slice) else f"({text})"
                yield Mutation(old.lineno, old.end_lineno, begin, end, text)


def _nodes(tree: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    """The nodes below `tree` that may be changed. `inside` is true in a function's body and in a value."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name not in UNTESTED_NAMES:
                defaults = [*child.args.defaults, *filter(None, child.args.kw_defaults)]
                yield from _nodes(ast.Tuple(defaults), True)
                yield from _nodes(ast.Module(child.body, []), True)
        elif isinstance(child, ast.JoinedStr | ast.arguments) or _is_message(child):
            continue
        elif isinstance(child, ast.keyword) and child.arg == "strict":
            continue  # strict=True only checks what holds
        elif isinstance(child, ast.AnnAssign):
            yield from _nodes(ast.Expression(child.value), True) if child.value else ()
        elif isinstance(child, ast.Assign) and not inside:
            if isinstance(child.targets[0], ast.Name) and child.targets[0].id.isupper():
                yield from _nodes(ast.Expression(child.value), True)
        else:
            if inside:
                yield child
            yield from _nodes(child, inside)


def _is_message(node: ast.AST) -> bool:
    """Whether a node only makes a message, or names a type such as list[int]."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id in GENERIC_TYPES
    call = node.value if isinstance(node, ast.Expr) else node
    return (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MESSAGES
    )


def _replacements(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST]]:
    """Yield pairs of an old and a new node."""
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                for new in SWAPS[type(operator)]:
                    others = [*operators[:place], new(), *operators[place + 1 :]]
                    yield node, _with(node, ops=others)
        case ast.BinOp():
            yield from ((node, _with(node, op=new())) for new in SWAPS.get(type(node.op), ()))
            if isinstance(node.op, ast.BitOr):  # of flags or of sets
                yield from ((node, each) for each in (node.left, node.right))
        case ast.BoolOp():
            yield from ((node, _with(node, op=new())) for new in SWAPS[type(node.op)])
            for values in _without_one(node.values):
                yield node, _with(node, values=values) if len(values) > 1 else values[0]
        case ast.AugAssign():
            yield from ((node, _with(node, op=new())) for new in SWAPS[type(node.op)])
            yield node, ast.Pass()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, node.operand
        case ast.Constant(value=bool()):
            yield node, ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as number):
            is_small = abs(number) < 10 and number == int(number)
            half = number // 2 if isinstance(number, int) else number / 2
            changed = (number + 1, number - 1) if is_small else (number * 2, half)
            yield from ((node, ast.Constant(each)) for each in changed)
        case ast.If() | ast.While() | ast.IfExp():
            yield node.test, ast.UnaryOp(ast.Not(), node.test)
            if isinstance(node, ast.If) and not node.orelse:
                yield node.test, ast.Constant(False)
        case ast.comprehension():
            for condition in node.ifs:
                yield condition, ast.UnaryOp(ast.Not(), condition)
                yield condition, ast.Constant(True)
        case ast.Subscript(slice=ast.Slice() as part):
            for side in ("lower", "upper"):
                if (bound := getattr(part, side)) is not None:
                    yield part, _with(part, **{side: None})
                    yield bound, ast.BinOp(bound, ast.Add(), ast.Constant(1))
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))):
            yield node.slice, ast.Constant(0)
        case ast.Tuple() | ast.List() | ast.Set() if len(node.elts) > 1:
            is_index = any(isinstance(each, ast.Slice) for each in node.elts)
            if not is_index and not isinstance(getattr(node, "ctx", None), ast.Store):
                yield from ((node, _with(node, elts=elts)) for elts in _without_one(node.elts))
        case ast.Dict():
            items = [*zip(node.keys, node.values, strict=True)]
            for kept in _without_one(items) if len(items) > 1 else ():
                yield (
                    node,
                    _with(node, keys=[key for key, _ in kept], values=[value for _, value in kept]),
                )
        case ast.Call():
            yield from ((node, new) for new in _other_calls(node))
        case (
            ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom())
            | ast.Raise()
            | ast.Delete()
        ):
            yield node, ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, ast.Pass()
        case ast.Assign(targets=[ast.Name(id=name)]):
            if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.value)):
                yield node, ast.Pass()
        case ast.Return(value=ast.expr()):
            yield node, ast.Return(ast.Constant(None))
        case ast.Break():
            yield node, ast.Continue()
        case ast.Continue():
            yield node, ast.Pass()


def _other_calls(call: ast.Call) -> Iterator[ast.AST]:
    """What a call may be replaced by: a call with other arguments or of another function, or its object."""
    match call.func:
        case ast.Name(id=name):
            other: ast.AST = ast.Name(OTHER_NAMES.get(name, name))
            inner = call.args[0] if call.args else None
        case ast.Attribute(attr=name):
            other = _with(call.func, attr=OTHER_NAMES.get(name, name))
            inner = call.func.value
        case _:
            name = ""
            other = call.func
            inner = None
    # Without a maximum, split and rsplit are equal.
    is_same = name in ("split", "rsplit") and len(call.args) + len(call.keywords) < 2
    is_mean = isinstance(other, ast.Name) and other.id == "mean"
    if name in OTHER_NAMES and not is_same and not is_mean:
        yield _with(call, func=other)
    if name in CHANGES and inner is not None:
        yield inner
    two = len(call.args) > 1 and not isinstance(call.args[0], ast.Starred)
    if two and name not in SYMMETRIC:
        yield _with(call, args=[call.args[1], call.args[0], *call.args[2:]])
    for keywords in _without_one(call.keywords):
        if not any(each.arg == "strict" for each in {*call.keywords} - {*keywords}):
            yield _with(call, keywords=keywords)


def _without_one(items: list[Item]) -> Iterator[list[Item]]:
    """The lists that lack one of the items."""
    return (items[:place] + items[place + 1 :] for place in range(len(items)))


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of a node with some other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new

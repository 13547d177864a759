"""Small faults in Python source, such as `<=` instead of `<` or a call that is left out: for mutants.py."""

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple

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
    """All faults in the bodies of functions, except in messages, annotations, defaults and formatted strings."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _nodes(ast.parse(source)):
        for old, new in _replacements(node):
            text = ast.unparse(new)
            if old.end_lineno and "\n" not in text:
                begin = starts[old.lineno - 1] + old.col_offset
                end = starts[old.end_lineno - 1] + (old.end_col_offset or 0)
                text = text if isinstance(old, ast.stmt) else f"({text})"
                yield Mutation(old.lineno, old.end_lineno, begin, end, text)


def _nodes(tree: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    """The nodes below `tree` that may be changed. `inside` is true in the body of a function."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name not in UNTESTED_NAMES:
                yield from _nodes(ast.Module(child.body, []), True)
        elif isinstance(child, ast.JoinedStr | ast.arguments) or _is_message(child):
            continue
        elif isinstance(child, ast.AnnAssign):
            yield from _nodes(ast.Expression(child.value), inside) if child.value else ()
        else:
            if inside:
                yield child
            yield from _nodes(child, inside)


def _is_message(node: ast.AST) -> bool:
    """Whether a node only makes a message."""
    call = node.value if isinstance(node, ast.Expr) else node
    return (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MESSAGES
    )


def _replacements(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST]]:
    """Yield pairs of an old and a new node."""
    match node:
        case ast.Compare(ops=[operator]):
            yield from ((node, _with(node, ops=[new()])) for new in SWAPS[type(operator)])
        case ast.BinOp() | ast.BoolOp():
            yield from ((node, _with(node, op=new())) for new in SWAPS.get(type(node.op), ()))
        case ast.AugAssign():
            yield from ((node, _with(node, op=new())) for new in SWAPS[type(node.op)])
            yield node, ast.Pass()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, node.operand
        case ast.Constant(value=bool()):
            yield node, ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as number):
            yield from ((node, ast.Constant(number + change)) for change in (1, -1))
        case ast.If() | ast.While() | ast.IfExp():
            yield node.test, ast.UnaryOp(ast.Not(), node.test)
        case ast.comprehension():
            yield from ((condition, ast.UnaryOp(ast.Not(), condition)) for condition in node.ifs)
        case ast.Call():
            if len(node.args) > 1 and not isinstance(node.args[0], ast.Starred):
                yield node, _with(node, args=[node.args[1], node.args[0], *node.args[2:]])
            for keyword in node.keywords:
                yield (
                    node,
                    _with(node, keywords=[each for each in node.keywords if each is not keyword]),
                )
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield node, ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, ast.Pass()
        case ast.Return(value=ast.expr()):
            yield node, ast.Return(ast.Constant(None))
        case ast.Break():
            yield node, ast.Continue()
        case ast.Continue():
            yield node, ast.Pass()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of a node with some other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new

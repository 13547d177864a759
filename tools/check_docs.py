"""Check the pages of the documentation, and the flags in messages: `python tools/check_docs.py`.

Prints `file:line: what is wrong` for each fault, and exits with 1 if there is one. Faults are:

* a command that `transduce` does not accept, and a command that no page shows;
* a link, an anchor or a file name that leads nowhere;
* a target that the Makefile lacks;
* Python code that imports a missing name, and a recipe with a wrong option;
* a figure of docs/paper/claims.md that the linked results lack;
* a flag such as --out in a message of the library, whose users may call it from Python, where options have no dashes.
"""

import ast
import importlib
import inspect
import itertools
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from cyclopts.exceptions import CycloptsError

import transduce
from transduce import cli
from transduce.config.commands import commands
from transduce.config.parse import configure, parse_assignments, read_recipe
from transduce.config.schema import options
from transduce.system.errors import UserError

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "transduce"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"  # tests/test_contributing.py runs its examples
OPTIONS_PAGE = (
    ROOT / "docs" / "reference" / "options.md"
)  # docs/generate.py adds a heading for each option
COMMANDS_PAGE = ROOT / "docs" / "reference" / "commands.md"
CLAIMS_PAGE = ROOT / "docs" / "paper" / "claims.md"
RECIPE_PAGES = {ROOT / "docs" / "reference" / name for name in ("options.md", "recipes.md")}
UNSHOWN = {"demo", "options"}  # commands that need no example
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FOLDERS = "|".join(path.name for path in PACKAGE.iterdir() if path.is_dir())
FILE = re.compile(r"`((?:src|benchmarks|docs|tests|tools)/[\w./-]+\.\w+)`")
MODULE = re.compile(rf"`((?:{FOLDERS})/[\w./]+)`")  # named as below src/transduce
FIGURE = re.compile(r"[+−]?\d(?:[\d,.]*\d)?(?:e\+\d+)?")
FLAG = re.compile(r"(?<![\w(-])--[a-z][a-z-]*(?![\w-]*:)")
# A whole command in a message: users paste it into a shell.
PASTED = re.compile(r"transduce [a-z]+ .*", re.DOTALL)
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
VARIABLE = re.compile(r"[A-Z_]+=")  # of the environment
SEPARATORS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "2>"}
PLACEHOLDERS = {"…", "..."}  # stand for what the reader writes


class Fault(NamedTuple):
    """A fault at a line of a file."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


class Block(NamedTuple):
    """A fenced block of a page."""

    path: Path
    language: str
    line: int  # of its first line of content
    text: str


class Command(NamedTuple):
    """A call of `transduce` in a fenced block."""

    path: Path
    line: int
    arguments: list[str]


def main() -> None:
    faults = sorted(find_faults())
    for fault in faults:
        print(fault)
    sys.exit(bool(faults))


def find_faults() -> Iterator[Fault]:
    """All faults of the repository."""
    pages = [
        ROOT / "README.md",
        CONTRIBUTING,
        ROOT / "SECURITY.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    shown: set[str] = set()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        yield from check_links(page, text)
        yield from check_code(page, text)
        yield from check_targets(page, text)
        for command in commands_of(page, text):
            shown.add(command.arguments[0])
            yield from check_command(command)
    for name in sorted(commands().keys() - shown - UNSHOWN):
        yield Fault(COMMANDS_PAGE, 1, f"no page shows `transduce {name}`")
    yield from check_claims()
    yield from check_messages()


# ---- links and names of files -------------------------------------------------------------------


def check_links(page: Path, text: str) -> Iterator[Fault]:
    """Links whose file or anchor is missing, and names of missing files."""
    for link in LINK.finditer(text):
        target, anchor = link.groups()
        path = (page.parent / target).resolve() if target else page
        line = line_of(text, link)
        if not path.exists():
            yield Fault(page, line, f"the link leads to {target}, which does not exist")
        elif anchor and anchor not in anchors_of(path):
            yield Fault(page, line, f"{path.name} has no heading #{anchor}")
    for pattern, folder in ((FILE, ROOT), (MODULE, PACKAGE)):
        for name in pattern.finditer(text):
            if not (folder / name[1]).exists():
                yield Fault(page, line_of(text, name), f"{name[1]} does not exist")


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs form them, also of generated headings."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return anchors | {option.name for option in options() if page == OPTIONS_PAGE}


def line_of(text: str, match: re.Match[str]) -> int:
    """The line where a match begins."""
    return text.count("\n", 0, match.start()) + 1


# ---- commands -----------------------------------------------------------------------------------


def commands_of(page: Path, text: str) -> Iterator[Command]:
    """The calls of `transduce` in a page's fenced blocks."""
    for block in blocks_of(page, text):
        begun = ""  # a command goes on after a backslash
        for line, content in enumerate(block.text.splitlines(), block.line):
            begun += content.removeprefix("$ ")
            if begun.endswith("\\"):
                begun = begun.removesuffix("\\")
                continue
            for arguments in calls(begun):
                yield Command(page, line, arguments)
            begun = ""


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of each `transduce` in a line of shell, which may have pipes, variables and torchrun."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.commenters = "#"
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # an unmatched apostrophe: printed text
        return
    part: list[str] = []
    for word in [*words, ";"]:
        if word not in SEPARATORS:
            part.append(word)
            continue
        while part and VARIABLE.match(part[0]):
            part = part[1:]
        if part and Path(part[0]).name == "transduce":  # also .venv/bin/transduce
            part = part[1:]
        elif "-m" in part and part[part.index("-m") + 1 :][:1] == ["transduce"]:
            part = part[part.index("-m") + 2 :]
        else:
            part = []
        if part:
            yield part
        part = []


def check_targets(page: Path, text: str) -> Iterator[Fault]:
    """Lines of fenced blocks that begin with `make` and name no target of the Makefile."""
    targets = TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8"))
    for block in blocks_of(page, text):
        for line, content in enumerate(block.text.splitlines(), block.line):
            words = content.split()
            if words[:1] == ["make"] and words[1] not in targets:
                yield Fault(page, line, f"the Makefile has no target {words[1]}")


def check_command(command: Command) -> Iterator[Fault]:
    """What the command line and the options say against a command."""
    given = [argument for argument in command.arguments if argument not in PLACEHOLDERS]
    # As `main` prepares them; to call `main` would run the command.
    arguments = cli._for_cyclopts(given)
    try:
        if len(given) == len(command.arguments):
            cli.application().parse_args(arguments, exit_on_error=False, print_error=False)
        options = [value for flag, value in itertools.pairwise(arguments) if flag == "--set"]
        configure(
            parse_assignments(
                [option for option in options if option.partition("=")[2] not in PLACEHOLDERS]
            )
        )
    except (CycloptsError, UserError) as error:
        yield Fault(command.path, command.line, " ".join(str(error).split()))


# ---- Python and recipes -------------------------------------------------------------------------


def blocks_of(page: Path, text: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    for match in FENCED.finditer(text):
        yield Block(page, match[1], line_of(text, match) + 1, match[2])


def check_code(page: Path, text: str) -> Iterator[Fault]:
    """The faults of a page's Python code and recipes."""
    for block in blocks_of(page, text):
        if block.language == "python" and "…" not in block.text and page != CONTRIBUTING:
            yield from check_python(block)
        elif block.language == "toml" and page in RECIPE_PAGES:
            try:
                configure(read_recipe(block.text, page.name))
            except UserError as error:
                yield Fault(page, block.line, str(error))


def check_python(block: Block) -> Iterator[Fault]:
    """Imported names and names of `transduce` that do not exist."""
    try:
        tree = ast.parse(block.text)
    except SyntaxError as error:
        yield Fault(block.path, block.line, f"not Python: {error}")
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            missing = missing_names(node)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "transduce":
            missing = [] if hasattr(transduce, node.attr) else [node.attr]
        else:
            continue
        for name in missing:
            yield Fault(
                block.path,
                block.line + node.lineno - 1,
                f"there is no {name} in `{ast.unparse(node)}`",
            )


def missing_names(node: ast.ImportFrom) -> list[str]:
    """The names that an import does not find."""
    try:
        module = importlib.import_module(node.module or "")
    except ModuleNotFoundError:
        return [node.module or ""]
    return [name.name for name in node.names if not hasattr(module, name.name)]


# ---- figures ------------------------------------------------------------------------------------


def check_claims() -> Iterator[Fault]:
    """Figures of the table of claims that are not in the results that its last column links to."""
    for line, row in enumerate(CLAIMS_PAGE.read_text(encoding="utf-8").splitlines(), start=1):
        cells = row.split("|")[1:-1]
        if len(cells) != 5:
            continue
        _, _, figures, _, source = cells
        for target, _ in LINK.findall(source):
            path = CLAIMS_PAGE.parent / target if target else CLAIMS_PAGE
            results = path.read_text(encoding="utf-8").replace("−", "-")
            for figure in FIGURE.findall(figures):
                number = figure.replace("−", "-")
                if not (is_in(number, results) or is_in(number.replace(",", ""), results)):
                    yield Fault(CLAIMS_PAGE, line, f"{target} lacks the figure {figure}")


def is_in(number: str, text: str) -> bool:
    """Whether a text has a number, and not only as part of another number."""
    return re.search(rf"(?<![\d.]){re.escape(number)}(?![\d])", text) is not None


# ---- flags in messages --------------------------------------------------------------------------


def check_messages() -> Iterator[Fault]:
    """Flags in the strings of modules other than the command line's."""
    flags = known_flags()
    for path in sorted(PACKAGE.rglob("*.py")):
        is_command = (
            path.name in {"cli.py", "__main__.py"}
            or path.parent.name == "commands"
            or "command" in path.stem
        )
        if is_command:
            continue
        for line, string in strings_of(ast.parse(path.read_text(encoding="utf-8"))):
            for flag in flags.intersection(FLAG.findall(PASTED.sub("", string))):
                yield Fault(
                    path,
                    line,
                    f"a message names the flag {flag}; name the option by Hint.about",
                )


def known_flags() -> set[str]:
    """The flags of all commands."""
    flags = {*cli.FLAGS.values(), "--set"}
    for command in commands().values():
        names = inspect.signature(resolve_name(command.function)).parameters
        flags |= {f"--{name.replace('_', '-')}" for name in names}
    return flags


def strings_of(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The strings below a node with their lines, without docstrings; an f-string has blanks for its values."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else " " for part in child.values]
            yield child.lineno, "".join(map(str, parts))
        elif (
            isinstance(child, ast.Constant)
            and isinstance(child.value, str)
            and not isinstance(node, ast.Expr)
        ):
            yield child.lineno, child.value
        else:
            yield from strings_of(child)


if __name__ == "__main__":
    main()

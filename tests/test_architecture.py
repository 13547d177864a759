"""Imports point down: a module imports only from lower floors and from its own folder (docs/architecture.md).

Names in strings, such as "transduce.wings.serving.command:serve", count as arrows of their own kind. Only the modules
in REGISTRIES may have them; they may point anywhere.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parents[1] / "src"
FLOORS = [  # of the core; a wing stands above all of them
    {"system"},
    {"config"},
    {"text", "tokens", "model"},
    {"augmentation", "inline"},
    {"model_folder", "preparation"},
    {"decoding"},
    {"evaluation"},
    {"training"},
    {"commands"},
]
WINGS = [  # which wing may use which: one below it
    {"wings.formats", "wings.ibm_model_1", "wings.phrasebook", "wings.completion"},
    {
        "wings.ct2",
        "wings.documents",
        "wings.inspection",
        "wings.rules",
        "wings.tables",
        "wings.terms",
        "wings.memories",
    },
    {"wings.learning"},
    {
        "wings.agents",
        "wings.cluster",
        "wings.corpora",
        "wings.demo",
        "wings.export",
        "wings.serving",
        "wings.synthetic",
    },
    {"wings.pretrained"},
    {"cli"},
    {"__main__"},
]
LAB = [  # above the core and the wings, of which it may use all
    {"lab.options"},
    {"lab.families", "lab.modalities", "lab.operations", "lab.parsing", "lab.words"},
    {"lab.comparing"},
    {"lab.paper"},
    {"lab.commands", "lab.registered"},
]
ORDER = [*FLOORS, *WINGS, *LAB]
NAME = re.compile(r"transduce[._]([\w.]+):(\w+)")  # "module:object", as in a registry
# Commands and their options, model families, file formats; engines and export formats.
REGISTRIES = {
    "config.commands",
    "config.families",
    "text.formats",
    "decoding.registry",
    "lab.commands",
    "lab.registered",
}
WITHOUT_TORCH = {"system", "config", "text", "tokens", "evaluation.scores", "decoding.translator"}
# Folders that are nothing without.
WITH_EXTRA = {
    "wings.serving": {"fastapi", "prometheus_client", "starlette", "uvicorn"},
    "wings.agents": {"mcp"},
    "wings.corpora": {"httpx2"},
}
# Extras, imported where they are used.
OPTIONAL = {
    "ctranslate2",
    "ctranslate2.specs",
    "sacremoses",
    "zstandard",
    "tensorboard",
    "babel",
    "babel.messages.plurals",
    "PIL",
    "fastapi",
    "httpx2",
    "markdown_it",
    "mcp",
    "onnx",
    "onnxruntime",
    "prometheus_client",
    "pyarrow",
    "ray",
    "scipy",
    "py3langid",
    "pymarian",
    "sentencex",
    "tokenizers",
    "simplemma",
    "starlette",
    "transformers",
    "uvicorn",
    "yaml",
    "torch.utils.tensorboard",
}
UNIX_ONLY = {"resource"}
# Imports that would slow down --help.
SLOW = {"filelock", "matplotlib", "numpy", "sacrebleu", "safetensors", "sentencepiece", "torch"}
LATE = {  # a line is translated at once: without torch by a fast engine, and without what documents need
    ("cli", "config.parse"),
    ("decoding.loading", "model.device"),
    ("decoding.translator", "decoding.plan"),
    ("decoding.translator", "inline.placeholder_tokens"),
    ("model_folder", "model.build"),
    ("wings.ct2.opening", "wings.ct2.build"),
    ("wings.formats", "tokens.tokenizer"),
}


def room(module: str) -> str:
    """The folder of the core, the wing, or the folder of the lab, that a module belongs to."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] in ("wings", "lab") else 1])


def is_command(module: str) -> bool:
    """Commands of the core, and those that stand in the wing that they belong to."""
    return module.startswith("commands.") or (
        module.startswith(("wings.", "lab.")) and "command" in module.rpartition(".")[2]
    )


class Import(NamedTuple):
    """`target` as the module that it is, our own by the names that `modules` gives them."""

    place: str
    importer: str
    target: str
    ours: bool
    in_function: bool


def modules(root: Path) -> dict[str, Path]:
    """Dotted name -> file, without "transduce." and with "lab." for "transduce_lab."; packages by their folder."""
    found: dict[str, Path] = {}
    for package in ("transduce", "transduce_lab"):
        for path in (root / package).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[own_name(".".join(parts[:-1] if parts[-1] == "__init__" else parts)) or ""] = path
    return found


def own_name(module: str) -> str | None:
    """A module's name as `modules` gives it, or None if it is not ours."""
    package, _, rest = module.partition(".")
    if package == "transduce_lab":
        return f"lab.{rest}" if rest else "lab"
    return rest if package == "transduce" else None


def imports(root: Path) -> Iterator[Import]:
    """Every import of every module but the `__init__.py`s."""
    known = modules(root)
    for importer, path in known.items():
        if path.name != "__init__.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node, in_function in statements(tree):
                for name in targets(node, importer, known):
                    own = own_name(name)
                    target = name if own is None else own
                    place = f"{path.relative_to(root)}:{node.lineno}"
                    yield Import(place, importer, target, own is not None, in_function)


class Name(NamedTuple):
    """A name in a string: the module that has it, and the module and the object that it names."""

    place: str
    importer: str
    target: str
    object: str


def names(root: Path) -> Iterator[Name]:
    """Every name such as "transduce.text.tsv:read_tsv" in a string; f-strings may begin with a constant."""
    for importer, path in modules(root).items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            node.targets[0].id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            if isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if found := NAME.fullmatch(spelt(node, constants)):
                yield Name(f"{path.relative_to(root)}:{node.lineno}", importer, found[1], found[2])


def spelt(node: ast.AST, constants: dict[str, object]) -> str:
    """The text of a string or an f-string, as far as constants tell it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(spelt(part, constants) for part in node.values)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        return str(constants.get(node.value.id, ""))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def statements(
    node: ast.AST, in_function: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, in_function
        yield from statements(
            child, in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        )


def targets(node: ast.Import | ast.ImportFrom, importer: str, known: dict[str, Path]) -> list[str]:
    """The modules that a statement imports: a name behind `from` counts as one if it is one of ours."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    module = node.module or ""
    if node.level:
        folder = ["transduce", *importer.split(".")][: -node.level]
        module = ".".join([*folder, module] if module else folder)
    inside = [f"{module}.{alias.name}" for alias in node.names]
    return [name if own_name(name) in known else module for name in inside]


def floor(module: str) -> int:
    """The floor of a module; whoever adds a module names its floor above."""
    return next(i for i, rooms in enumerate(ORDER) if room(module) in rooms)


def misdirected(each: Import, known: dict[str, Path]) -> str:
    """Why `each` may not import what it imports, or nothing."""
    if not each.ours:
        needless = (
            each.target.split(".")[0] == "torch"
            and {each.importer, room(each.importer)} & WITHOUT_TORCH
        )
        return "must do without torch" if needless and each.target not in OPTIONAL else ""
    if known.get(each.target, Path("__init__.py")).name == "__init__.py":
        return "is a package's __init__ or doesn't exist"
    here, there = floor(each.importer), floor(each.target)
    if room(each.importer) == room(each.target):
        return ""
    return "" if there < here else f"is on floor {there}, the importer on floor {here}"


def misplaced(each: Import) -> str:
    """Why `each` may not stand where it stands, or nothing."""
    if not each.in_function:
        extra = WITH_EXTRA.get(room(each.importer), set())
        package = each.target.split(".")[0]
        needless = package not in extra and (package in OPTIONAL or each.target in OPTIONAL)
        return "is optional, so it must be imported where it is used" if needless else ""
    if each.ours:
        allowed = is_command(each.importer) or (each.importer, each.target) in LATE
    else:
        allowed = (
            each.target in OPTIONAL or each.target.split(".")[0] in SLOW | OPTIONAL | UNIX_ONLY
        )
    return "" if allowed else "is imported inside a function"


def complaints(root: Path) -> list[str]:
    """What breaks the rules."""
    known = modules(root)
    reasons = ((each, misdirected(each, known) or misplaced(each)) for each in imports(root))
    found = [f"{each.place}: {each.target} {reason}" for each, reason in reasons if reason]
    for each in names(root):
        if each.importer not in REGISTRIES:
            found.append(f"{each.place}: {each.target} is named in a string outside the registries")
        elif each.target not in known:
            found.append(f"{each.place}: {each.target} does not exist")
    return found


def cycle(root: Path) -> list[str]:
    """Modules that import each other in a circle, or none."""
    graph: dict[str, set[str]] = {}
    for each in imports(root):
        if each.ours:
            graph.setdefault(each.importer, set()).add(each.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_point_down() -> None:
    assert complaints(SOURCE) == []


def test_imports_have_no_cycles() -> None:
    assert cycle(SOURCE) == []


def test_every_module_has_a_floor() -> None:
    homeless = [
        name
        for name in modules(SOURCE)
        if "." in name and not any(room(name) in rooms for rooms in ORDER)
    ]
    assert homeless == []


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small house that breaks no rule."""
    files = {
        "__init__.py": "from transduce.training.run import run",
        "system/__init__.py": "",
        "system/errors.py": "",
        "config/__init__.py": "",
        "config/schema.py": "from transduce.system.errors import UserError",
        "model/__init__.py": "",
        "model/layers.py": "import torch\nfrom transduce.config import schema",
        "model/build.py": "from . import layers\nfrom .layers import x\nimport transduce.config.schema",
        "tokens/__init__.py": "",
        "tokens/store.py": "def f():\n    import zstandard",
        "training/__init__.py": "",
        "training/run.py": "from transduce.model.build import build",
        "commands/__init__.py": "",
        "commands/train.py": "def train():\n    from transduce.training import run",
        "wings/__init__.py": "",
        "wings/serving/__init__.py": "",
        "wings/serving/api.py": "import fastapi\nfrom transduce.training.run import run",
        "wings/serving/command.py": "def serve():\n    from transduce.wings.serving import api",
        "config/commands.py": 'WINGS = "transduce.wings"\nSERVE = f"{WINGS}.serving.command:serve"',
        "cli.py": "from transduce.commands.train import train",
    }
    for name, text in files.items():
        path = tmp_path / "transduce" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_imports_that_follow_the_rules_are_accepted(house: Path) -> None:
    assert complaints(house) == []
    assert cycle(house) == []
    found = {(each.importer, each.target) for each in imports(house) if each.ours}
    assert {
        ("model.build", "model.layers"),
        ("model.layers", "config.schema"),
        ("commands.train", "training.run"),
    } <= found


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("model/layers.py", "from transduce.training.run import run", id="up"),
        pytest.param("model/layers.py", "import transduce.training.run", id="up, import x.y"),
        pytest.param(
            "model/layers.py", "from transduce.training import run", id="up, from x import y"
        ),
        pytest.param("model/layers.py", "from ..training.run import run", id="up, relative"),
        pytest.param(
            "model/layers.py", "from ..training import run", id="up, relative, from .. import y"
        ),
        pytest.param(
            "config/schema.py", "from transduce.model.layers import x", id="up from the ground"
        ),
        pytest.param("tokens/store.py", "from transduce.model.layers import x", id="sideways"),
        pytest.param(
            "training/run.py",
            "from transduce.wings.serving.api import x",
            id="from the core into a wing",
        ),
        pytest.param(
            "training/run.py", "from transduce import run", id="from the package's __init__"
        ),
        pytest.param(
            "training/run.py", "from transduce.model import layer", id="from a folder's __init__"
        ),
        pytest.param(
            "training/run.py",
            "def f():\n    from transduce.config import schema",
            id="inside a function",
        ),
        pytest.param(
            "training/run.py",
            "class A:\n    async def f(self):\n        import json",
            id="inside a method",
        ),
        pytest.param(
            "training/run.py",
            "if True:\n    from transduce.commands import train",
            id="up, inside an if",
        ),
        pytest.param("training/run.py", "import zstandard", id="an extra for everybody"),
        pytest.param(
            "training/run.py",
            'SERVE = "transduce.wings.serving.command:serve"',
            id="a name in a string",
        ),
        pytest.param(
            "config/commands.py",
            'SERVE = "transduce.wings.serving.gone:serve"',
            id="a name of nothing",
        ),
        pytest.param("tokens/store.py", "import torch.nn", id="torch where it must not be"),
    ],
)
def test_a_broken_rule_is_found(house: Path, file: str, text: str) -> None:
    (house / "transduce" / file).write_text(textwrap.dedent(text), encoding="utf-8")
    assert [complaint.split(":")[0] for complaint in complaints(house)] == [f"transduce/{file}"]


def test_a_cycle_is_found(house: Path) -> None:
    (house / "transduce" / "model" / "layers.py").write_text(
        "from transduce.model import build", encoding="utf-8"
    )
    assert set(cycle(house)) == {"model.layers", "model.build"}

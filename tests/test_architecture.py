"""Imports point down: a module knows lower floors and its own folder, nothing else (docs/architecture.md)."""

import ast
import textwrap
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "transduce"
FLOORS = [  # of the core; a wing stands above all of them
    {"system"},
    {"config"},
    {"text", "tokens", "model"},
    {"model_folder", "preparation"},
    {"decoding"},
    {"evaluation"},
    {"training"},
    {"commands"},
]
WINGS = [  # which wing may use which: one below it
    {"wings.formats", "wings.phrasebook", "wings.inline", "wings.ibm_model_1"},
    {
        *("wings.ct2", "wings.documents", "wings.families", "wings.inspection", "wings.parsing", "wings.rules"),
        "wings.augmentation",
        "wings.int8",
        "wings.terms",
    },
    {"wings.comparing"},
    {"wings.cluster", "wings.corpora", "wings.demo", "wings.export", "wings.serving", "wings.synthetic"},
    {"wings.paper"},
    {"cli"},
    {"__main__"},
]
ORDER = [*FLOORS, *WINGS]
# What of the core still reaches into a wing. Registries are to replace each of these.
INTO_WINGS = set[tuple[str, str]]()
WITHOUT_TORCH = {"system", "config", "text", "tokens", "evaluation.scores", "decoding.translator"}
WITH_EXTRA = {
    "wings.serving": {"fastapi", "prometheus_client", "starlette", "uvicorn"},
    "wings.corpora": {"httpx2"},
}  # folders that are nothing without
OPTIONAL = {
    "ctranslate2",
    "ctranslate2.specs",
    "sacremoses",
    "zstandard",
    "tensorboard",
    "babel",
    "babel.messages.plurals",
    "fastapi",
    "httpx2",
    "onnx",
    "onnxruntime",
    "prometheus_client",
    "ray",
    "scipy",
    "py3langid",
    "sentencex",
    "starlette",
    "transformers",
    "uvicorn",
    "torch.utils.tensorboard",
}  # extras, imported where they are used
UNIX_ONLY = {"resource"}
# Imports that would slow down --help.
SLOW = {"filelock", "matplotlib", "numpy", "sacrebleu", "safetensors", "sentencepiece", "torch"}
LATE = {  # a line is translated at once: without torch by a fast engine, and without what documents need
    ("decoding.loading", "model.device"),
    ("model_folder", "model.build"),
    ("wings.formats", "tokens.tokenizer"),
}


def room(module: str) -> str:
    """The folder of the core, or the wing, that a module belongs to."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] == "wings" else 1])


def is_command(module: str) -> bool:
    """Commands of the core, and those that stand in the wing that they belong to."""
    return module.startswith("commands.") or (module.startswith("wings.") and "command" in module.rpartition(".")[2])


class Import(NamedTuple):
    """`target` as the module that it is, our own with their dots but without "transduce."."""

    place: str
    importer: str
    target: str
    ours: bool
    in_function: bool


def modules(root: Path) -> dict[str, Path]:
    """Dotted name without "transduce." -> file; a package under its folder's name, the root under ""."""
    paths = {path.relative_to(root).with_suffix(""): path for path in root.rglob("*.py")}
    return {".".join(p.parts[:-1] if p.name == "__init__" else p.parts): path for p, path in paths.items()}


def imports(root: Path) -> Iterator[Import]:
    """Every import of every module but the `__init__.py`s."""
    known = modules(root)
    for importer, path in known.items():
        if path.name != "__init__.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node, in_function in statements(tree):
                for name in targets(node, importer, known):
                    ours = name == "transduce" or name.startswith("transduce.")
                    target = name.removeprefix("transduce").removeprefix(".") if ours else name
                    yield Import(f"{path.relative_to(root)}:{node.lineno}", importer, target, ours, in_function)


def statements(node: ast.AST, in_function: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, in_function
        yield from statements(child, in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def targets(node: ast.Import | ast.ImportFrom, importer: str, known: dict[str, Path]) -> list[str]:
    """The modules that a statement imports: a name behind `from` counts as one if it is one of ours."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    module = node.module or ""
    if node.level:
        folder = ["transduce", *importer.split(".")][: -node.level]
        module = ".".join([*folder, module] if module else folder)
    inside = [f"{module}.{alias.name}" for alias in node.names]
    return [name if name.removeprefix("transduce.") in known else module for name in inside]


def floor(module: str) -> int:
    """The floor of a module; whoever adds a module names its floor above."""
    return next(i for i, rooms in enumerate(ORDER) if room(module) in rooms)


def misdirected(each: Import, known: dict[str, Path]) -> str:
    """Why `each` may not import what it imports, or nothing."""
    if not each.ours:
        needless = each.target.split(".")[0] == "torch" and {each.importer, room(each.importer)} & WITHOUT_TORCH
        return "must do without torch" if needless and each.target not in OPTIONAL else ""
    if known.get(each.target, Path("__init__.py")).name == "__init__.py":
        return "is a package's __init__ or doesn't exist"
    here, there = floor(each.importer), floor(each.target)
    if room(each.importer) == room(each.target) or (each.importer, each.target) in INTO_WINGS:
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
        allowed = each.target in OPTIONAL or each.target.split(".")[0] in SLOW | OPTIONAL | UNIX_ONLY
    return "" if allowed else "is imported inside a function"


def complaints(root: Path) -> list[str]:
    """What breaks the rules."""
    known = modules(root)
    reasons = ((each, misdirected(each, known) or misplaced(each)) for each in imports(root))
    return [f"{each.place}: {each.target} {reason}" for each, reason in reasons if reason]


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
    assert complaints(PACKAGE) == []


def test_there_are_no_cycles() -> None:
    assert cycle(PACKAGE) == []


def test_every_module_has_a_floor() -> None:
    homeless = [name for name in modules(PACKAGE) if "." in name and not any(room(name) in rooms for rooms in ORDER)]
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
        "cli.py": "from transduce.commands.train import train",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_tidy_house_is_accepted(house: Path) -> None:
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
        pytest.param("model/layers.py", "from transduce.training import run", id="up, from x import y"),
        pytest.param("model/layers.py", "from ..training.run import run", id="up, relative"),
        pytest.param("model/layers.py", "from ..training import run", id="up, relative, from .. import y"),
        pytest.param("config/schema.py", "from transduce.model.layers import x", id="up from the ground"),
        pytest.param("tokens/store.py", "from transduce.model.layers import x", id="sideways"),
        pytest.param("training/run.py", "from transduce.wings.serving.api import x", id="from the core into a wing"),
        pytest.param("training/run.py", "from transduce import run", id="from the package's __init__"),
        pytest.param("training/run.py", "from transduce.model import layer", id="from a folder's __init__"),
        pytest.param("training/run.py", "def f():\n    from transduce.config import schema", id="inside a function"),
        pytest.param("training/run.py", "class A:\n    async def f(self):\n        import json", id="inside a method"),
        pytest.param("training/run.py", "if True:\n    from transduce.commands import train", id="up, inside an if"),
        pytest.param("training/run.py", "import zstandard", id="an extra for everybody"),
        pytest.param("tokens/store.py", "import torch.nn", id="torch where it must not be"),
    ],
)
def test_a_broken_rule_is_found(house: Path, file: str, text: str) -> None:
    (house / file).write_text(textwrap.dedent(text), encoding="utf-8")
    assert [complaint.split(":")[0] for complaint in complaints(house)] == [file]


def test_a_cycle_is_found(house: Path) -> None:
    (house / "model" / "layers.py").write_text("from transduce.model import build", encoding="utf-8")
    assert set(cycle(house)) == {"model.layers", "model.build"}

"""The command line: what it prints, with what status it ends, and what it does not load."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Annotated

import pytest
import torch
from cyclopts import Parameter

from transduce import cli
from transduce.commands.options import Assignments
from transduce.config import parse
from transduce.config import schema as config
from transduce.config.commands import COMMANDS, GROUPS, SHOW, STUDY, Command, commands
from transduce.system.errors import UserError
from transduce.system.machine import SPIN_COUNT
from transduce.system.registry import load

SLOW = {"torch", "numpy", "sacrebleu", "matplotlib", "sentencepiece", "safetensors"}


HELP = """
import sys, transduce
assert not {slow} & {{*sys.modules}}, "transduce"
from transduce import cli
from transduce.config.commands import COMMANDS, GROUPS, SHOW, STUDY, Command, commands
from transduce.system.registry import load
for command in ["", *commands()]:
    try:
        cli.main([*command.split(), "--help"])
    except SystemExit as exit:
        assert not exit.code
    assert not {slow} & {{*sys.modules}}, command
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    status = 0
    try:
        cli.main(arguments)
    except SystemExit as error:
        status = int(error.code or 0)
    output, errors = capsys.readouterr()
    return status, output, errors


CALLS: list[object] = []  # what the command `imitate` was called with
RAISED: list[BaseException] = []  # what the command `fail` raises


def imitate_command(
    recipe: Path | None = None,
    /,
    *,
    train: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    out: str,
    beam_size: int = 4,
    as_json: bool = False,
    assignments: Assignments = (),
) -> None:
    """A command with every kind of parameter."""
    CALLS.append((recipe, train, out, beam_size, assignments, *([as_json] if as_json else [])))


def fail_command() -> None:
    """A command that fails."""
    raise RAISED[0]


@pytest.fixture
def imitate(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The calls of a command `imitate`."""
    CALLS.clear()
    monkeypatch.setitem(
        COMMANDS, "imitate", Command(f"{__name__}:imitate_command", STUDY, "Imitate.")
    )
    return CALLS


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """What a command `fail` raises, to be filled."""
    RAISED.clear()
    monkeypatch.setitem(COMMANDS, "fail", Command(f"{__name__}:fail_command", STUDY, "Fail."))
    return RAISED


@pytest.mark.skipif(sys.platform != "linux", reason="another OpenMP")
@pytest.mark.parametrize(
    "theirs, turns",
    [({}, SPIN_COUNT), ({"OMP_WAIT_POLICY": "passive"}, "0"), ({"GOMP_SPINCOUNT": "7"}, "7")],
)
def test_a_thread_that_waits_sleeps_soon_unless_the_user_says_otherwise(theirs, turns):
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    }
    packages = Path(torch.__file__).parents[1]
    (library,) = (
        str(path)
        for folder in ("torch/lib", "torch.libs")
        for path in packages.glob(f"{folder}/libgomp*")
    )
    code = f"import ctypes\nfrom transduce import cli\ntry: cli.main(['--version'])\nfinally: ctypes.CDLL({library!r})"
    environment = kept | {"OMP_DISPLAY_ENV": "verbose"} | theirs  # OpenMP itself says what it does
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stderr
    assert f"GOMP_SPINCOUNT = '{turns}'" in found


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    source = (Path(config.__file__).parents[1] / "__init__.py").read_text(encoding="utf-8")
    status, output, _ = run(capsys, "--version")
    name, version = output.split()
    assert (status, name) == (0, "transduce")
    assert f'__version__ = "{version}"' in source


def test_help_lists_every_command_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run(capsys, "--help")
    listed = [
        line.split()[1]
        for line in output.splitlines()
        if line.startswith("│ ") and line[2] not in " -"
    ]
    assert status == 0
    assert sorted(listed) == sorted(commands())
    assert {command.group for command in commands().values()} == set(GROUPS)
    for command in commands().values():
        assert command.summary in output, "a summary fits on one line"


def test_help_imports_no_command() -> None:
    code = "import sys; from transduce import cli; cli.main(['--help']); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = {command.function.partition(":")[0] for command in commands().values()}
    assert not modules & set(run.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("command", commands())
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run(capsys, command, "--help")
    assert status == 0
    assert output.startswith(f"Usage: transduce {command}") and "[ARGS" not in output
    assert (load(commands()[command].function).__doc__ or "").split("\n")[0].split()[0] in output


@pytest.mark.parametrize("command", ["", *commands()])
def test_examples_of_help_are_commands(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, output, _ = run(capsys, *([command] if command else []), "--help")
    assert max(map(len, output.splitlines())) <= 80
    found = re.search("^Example: transduce (.+)$", output, re.MULTILINE)
    main = ("", "train", "translate", "evaluate", "doctor", "serve", "prepare", "import", "export")
    assert found or command not in main
    if found:
        cli.application().parse_args(found[1].split())


def test_the_package_and_help_load_nothing_slow() -> None:
    run = subprocess.run(
        [sys.executable, "-c", HELP.format(slow=SLOW)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert all(f"Usage: transduce {command}" in run.stdout for command in commands())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["optoins"], ["optoins", 'Did you mean "options"?']),
        (
            ["imitate", "--beam-sise", "3", "--out", "m"],
            ["--beam-sise", "Did you mean --beam-size?"],
        ),
        (["imitate", "--qqq", "3", "--out", "m"], ["Unknown option: --qqq."]),
        (["imitate", "--beam-size", "three", "--out", "m"], ["--beam-size", '"three"', "int"]),
        (["imitate"], ["imitate needs --out."]),
        (["imitate", "--out"], ["--out needs a value."]),
        (
            ["imitate", "one", "two", "--out", "m"],
            ["Unexpected argument two.\nhint: Put --train before the corpus files."],
        ),
    ],
)
@pytest.mark.usefixtures("imitate")
def test_mistyped_command_lines_get_a_message_and_a_hint(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    cause, hint = printed.err.splitlines()
    assert cause.startswith("transduce: ") and hint.startswith("hint: ")
    for word in [*words, "--help'."]:
        assert word in printed.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["recipe.toml", "--train", "a", "b", "--out", "m", "model.d_model=256", "train.steps=9"],
        ["model.d_model=256", "recipe.toml", "train.steps=9", "--out", "m", "--train", "a", "b"],
        [
            "--train",
            "a",
            "b",
            "model.d_model=256",
            "--out",
            "m",
            "--set",
            "train.steps=9",
            "recipe.toml",
        ],
    ],
)
def test_assignments_may_stand_anywhere(
    arguments: list[str], imitate: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "imitate", *arguments) == (0, "", "")
    assert imitate == [
        (Path("recipe.toml"), ("a", "b"), "m", 4, ("model.d_model=256", "train.steps=9"))
    ]


def test_a_file_that_looks_like_an_assignment_can_be_named(
    imitate: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "imitate", "--train", "./a=b", "dir/c.d=e", "--out", "m")
    assert imitate == [(None, ("./a=b", "dir/c.d=e"), "m", 4, ())]


def test_a_path_that_the_system_refuses_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, errors = run(capsys, "info", "x" * 300)
    assert status == 2 and errors == f"transduce: {'x' * 300}: File name too long.\n"


def test_a_lone_hyphen_is_a_value(
    imitate: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "imitate", "--out", "-")
    run(capsys, "imitate", "--out", "m", "--as-json", "-")  # but no flag's
    run(capsys, "imitate", "--out=m", "-")  # --out has a value
    stdin = Path("/dev/stdin")
    assert imitate == [
        (None, (), "-", 4, ()),
        (stdin, (), "m", 4, (), True),
        (stdin, (), "m", 4, ()),
    ]


def test_values_and_arguments_after_dashes_are_no_assignments(
    imitate: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "imitate", "--out", "train.steps=9", "x=5")  # a value, and no name of an option
    run(capsys, "imitate", "--out", "m", "--", "train.steps=9")
    assert imitate == [
        (Path("x=5"), (), "train.steps=9", 4, ()),
        (Path("train.steps=9"), (), "m", 4, ()),
    ]


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (
            UserError("text.en: line 3 is not UTF-8."),
            2,
            "transduce: text.en: line 3 is not UTF-8.\n",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_give_a_message_and_a_status(
    error: BaseException,
    status: int,
    text: str,
    fail: list[BaseException],
    capsys: pytest.CaptureFixture[str],
) -> None:
    fail.append(error)
    assert run(capsys, "fail") == (status, "", text)


def test_our_own_mistakes_keep_their_traceback(fail: list[BaseException]) -> None:
    fail.append(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.main(["fail"])


def test_closed_output_pipe_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as output:
        command = [sys.executable, "-m", "transduce", "options", "--json"]
        run = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (141, "")


@pytest.mark.parametrize(
    ("closed", "arguments", "status", "said"),
    [
        (
            ">&-",
            "--version",
            2,
            "transduce: The standard output is closed. Name a file, or open it.\n",
        ),
        ("2>&-", "info none", 2, ""),
        ("<&-", "translate none", 2, "transduce: There is no model folder none.\n"),
    ],
)
def test_streams_may_be_closed(closed: str, arguments: str, status: int, said: str) -> None:
    command = f"exec {sys.executable} -m transduce {arguments} {closed}"
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (status, "", said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_messages_that_can_not_be_written_end_no_work() -> None:
    code = "from transduce import cli; from transduce.system.console import log; log('a'); log('b')"
    command = [sys.executable, "-c", f"{code}; cli.main(['--version'])"]
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, check=False)
    assert run.returncode == 0 and run.stdout.startswith(b"transduce ")


@pytest.mark.parametrize("columns", ["0", "1"])
def test_help_needs_no_wide_terminal(columns: str) -> None:
    command, environment = (
        [sys.executable, "-m", "transduce", "train", "--help"],
        os.environ | {"COLUMNS": columns},
    )
    run = subprocess.run(command, capture_output=True, env=environment, text=True, check=True)
    assert max(map(len, run.stdout.splitlines())) == 20


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_unencodable_characters_are_escaped(errors: str) -> None:
    environment = os.environ | {"PYTHONIOENCODING": f"ascii:{errors}"}
    command = [sys.executable, "-m", "transduce", "train", "--help"]
    assert (
        b"\\u2026"
        in subprocess.run(command, capture_output=True, env=environment, check=True).stdout
    )


def test_options_lists_them_all_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    _, output, _ = run(capsys, "options")
    lines = {line.split()[0]: line for line in output.splitlines() if line.strip()}
    for option in config.options():
        assert option.help in lines[option.name]
        assert option.paper in lines[option.name]


def test_options_lists_them_all_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    _, output, _ = run(capsys, "options", "--json")
    rows = {row["name"]: row for row in json.loads(output)}
    assert list(rows) == [option.name for option in config.options()]
    assert (rows["model.d_model"]["default"], rows["model.d_model"]["unit"]) == (512, "channels")
    assert rows["model.norm"]["type"] == "post | pre"


@pytest.mark.parametrize(
    "option", [option for option in config.options() if option.paper], ids=lambda o: o.name
)
def test_the_papers_values_can_be_given(option: config.Option) -> None:
    given = parse.parse_assignments([f"{option.name}={option.paper}"])
    assert tomllib.loads(parse.to_toml(parse.configure(given)))


def fill_the_gpu() -> None:
    """Use all memory of the GPU."""
    raise torch.OutOfMemoryError("CUDA out of memory.")


def fill_the_memory() -> None:
    """Use more memory than there can be, in a tensor."""
    torch.empty(1 << 60)


def fill_the_memory_of_python() -> None:
    """Use more memory than there can be, in a text."""
    bytearray(1 << 62)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            fill_the_gpu,
            "The memory of the GPU is full. Lower data.max_tokens or decode.max_tokens.",
        ),
        (
            fill_the_memory,
            "The memory is full. Free some, or lower data.max_tokens or decode.max_tokens.",
        ),
        (
            fill_the_memory_of_python,
            "The memory is full. Free some, or lower data.max_tokens or decode.max_tokens.",
        ),
    ],
)
def test_a_full_memory_is_a_sentence(function, sentence, monkeypatch, capsys):
    monkeypatch.setitem(
        COMMANDS, "info", Command(f"{__name__}:{function.__name__}", SHOW, "Use all memory.")
    )
    status, _, said = run(capsys, "info")
    assert status == 2 and said == f"transduce: {sentence}\n"

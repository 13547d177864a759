"""Tests of transduce/wings/serving/command.py."""

import errno
import math
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import run

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from starlette.middleware.cors import CORSMiddleware

from transduce.system.errors import UserError
from transduce.wings.serving import command as commands
from transduce.wings.serving import network
from transduce.wings.serving.command import _listen, _origins
from transduce.wings.serving.keys import add_key


def test_origins_are_written_as_browsers_write_them() -> None:
    given = ["https://Example.org:443/", "http://a.b:80", "http://a.b:8080", "https://a.b:80", "*"]
    assert _origins(given) == [
        "https://example.org",
        "http://a.b",
        "http://a.b:8080",
        "https://a.b:80",
        "*",
    ]


# -- what it serves


class ExitError(Exception):
    """The process would end with this status."""


Served = Callable[..., tuple[Any, Any, Any, str]]


@pytest.fixture
def served(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], versions: list[Path]
) -> Served:
    """Runs the command up to the server: the application, its limits, its proxies, and what was said."""
    given: list[Any] = []
    create = socket.create_server

    def create_server(address: tuple[str, int], **options: Any) -> socket.socket:
        given[:] = [address, options]
        return create((address[0], 0), **options)

    def exit_with(status: int) -> None:
        raise ExitError(status)

    monkeypatch.setattr(commands.socket, "create_server", create_server)
    monkeypatch.setattr(network, "run", lambda *arguments: given.extend(arguments))
    monkeypatch.setattr(os, "_exit", exit_with)

    def serve(*arguments: object, address: tuple[str, int] = ("127.0.0.1", 5000)) -> Any:
        arguments = ("serve", versions[0], "--engine", "torch", *arguments)
        with pytest.raises(ExitError) as exited:
            run(capsys, *arguments)
        assert exited.value.args == (0,)
        at, options, app, listening, limits, proxies = given
        family = socket.AF_INET6 if ":" in at[0] else socket.AF_INET
        assert (at, options) == (address, {"family": family, "backlog": 1024})
        with listening:
            assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            port = listening.getsockname()[1]
        said = " ".join(capsys.readouterr().err.split())
        host = f"[{at[0]}]" if ":" in at[0] else at[0]
        assert said.endswith(f"Listening on http://{host}:{port}/")
        return app, limits, proxies, said

    return serve


def test_by_default_a_local_server_has_loaded_its_models(
    served: Served, versions: list[Path]
) -> None:
    app, limits, proxies, said = served()
    assert f"ka → zu: {versions[0]}, torch Listening" in said and "Warning" not in said
    assert (app.local, app.proxied, app.origins, bool(app.keys)) == (True, False, [], False)
    assert proxies == [] and limits == app.limits and limits.queue == 256
    [model] = app.service.store.models
    assert model.name == versions[0].name and model.version
    assert app.service.store._limit == math.inf


def test_options_reach_the_server(served: Served, versions: list[Path], tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "alice")
    app, limits, _, said = served(
        f"new={versions[1]}",
        *("--host", "0.0.0.0", "--port", 7, "--keys", tmp_path / "keys"),
        *("--memory-limit", "1G", "--limit", "limits.queue=7", "--limit", "limits.texts=8"),
        address=("0.0.0.0", 7),
    )
    assert (app.local, app.proxied, app.keys.owner(key)) == (False, False, "alice")
    assert (limits.queue, limits.texts) == (7, 8) and app.limits == limits
    assert [model.name for model in app.service.store.models] == [versions[0].name, "new"]
    assert app.service.store._limit == 1 << 30
    assert f"ka → zu: {versions[1]}, not loaded yet" in said
    assert not any(model.version for model in app.service.store.models)
    assert served("--host", "::1", address=("::1", 5000))[0].local
    insecure = served("--host", "0.0.0.0", "--insecure", address=("0.0.0.0", 5000))
    assert not insecure[0].local
    app, *_ = served("--cors", "https://A.example", "--cors", "http://b.example:80/")
    assert isinstance(app, CORSMiddleware)
    assert app.allow_origins == app.app.origins == ["https://a.example", "http://b.example"]


def test_a_proxy_on_this_machine_causes_a_warning_without_keys(
    served: Served, tmp_path: Path
) -> None:
    add_key(tmp_path / "keys", "alice")
    anywhere = ("--host", "0.0.0.0", "--insecure")
    for proxies, more, is_risky in (
        (["10.0.0.1"], (), False),
        (["10.0.0.1", "127.0.0.0/8"], (), True),
        (["::1"], (), True),
        (["127.0.0.1"], ("--keys", tmp_path / "keys"), False),
        (["127.0.0.1"], anywhere, False),
    ):
        options = [f"--proxy={each}" for each in proxies]
        at = ("0.0.0.0" if more == anywhere else "127.0.0.1", 5000)
        app, _, found, said = served(*options, *more, address=at)
        assert app.proxied and found == proxies
        assert ("Warning: with this --proxy" in said) == is_risky


def test_the_last_port_may_be_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_server(*_: object, **__: object) -> None:
        raise OSError(errno.EADDRINUSE, "x")

    monkeypatch.setattr(commands.socket, "create_server", create_server)
    for port, other in ((65535, 0), (65534, 65535)):
        with pytest.raises(UserError, match=f"is in use. Choose another: --port {other}."):
            _listen("127.0.0.1", port)


# -- what it refuses


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The sentence by which it refuses."""
    status, _, error = run(capsys, "serve", *arguments)
    assert status == 2 and "Traceback" not in error
    return " ".join(error.split())


def test_wrong_options_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, versions: list[Path]
) -> None:
    model = versions[0]
    assert "Name at least one model folder" in command(capsys)
    assert "nowhere" in command(capsys, tmp_path / "nowhere")
    for host in ("0.0.0.0", "::", "", "192.0.2.1"):
        assert "--insecure" in command(capsys, model, "--host", host)
    for host, reason in (("192.0.2.1", "Cannot assign"), ("x" * 70, "encoding with 'idna'")):
        sentence = command(capsys, model, "--host", host, "--insecure")
        assert f"Can't listen on {host}, port 5000: {reason}" in sentence
        assert "Choose another --host or --port" in sentence
    for port in (-1, 65536):
        assert f"Invalid port {port}. Choose a port from 1 to 65535" in command(
            capsys, model, "--port", port
        )
    assert "both translate ka to zu" in command(
        capsys, model, model, "--port", "0", "--engine", "torch"
    )
    for wrong in ("", "*", "proxy.example", "10.0.0.1/8", "10.0.0.256", "10.0.0.1,10.0.0.2"):
        assert "10.0.0.0/24" in command(capsys, model, "--proxy", "10.0.0.1", "--proxy", wrong)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        other = port + 1 if port < 65535 else 0
        assert f"is in use. Choose another: --port {other}." in command(
            capsys, model, "--port", port
        )
    for wrong in (
        "queue",
        "limits.queue",
        "limits.queues=1",
        "queue=1",
        "limits.queue=",
        "limits.queue=0",
    ):
        assert "limit" in command(capsys, model, "--limit", wrong)
    for wrong in ("-1", "1.5", "x", "٣", "9" * 5000):
        assert "whole number" in command(capsys, model, "--limit", f"limits.queue={wrong}")


def test_limits_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    status, shown, _ = run(capsys, "serve", "--show-limits", "--limit", "limits.queue=1_234")
    assert status == 0
    assert "1,234" in next(line for line in shown.splitlines() if "limits.queue " in line)
    assert shown.split()[:4] == ["limit", "value", "unit", "meaning"]


def test_missing_packages_are_named() -> None:
    script = "import sys; sys.modules['fastapi'] = None; from transduce import cli; cli.main(['serve', 'model'])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "pip install 'transduce[serve]'" in " ".join(
        done.stderr.split()
    )

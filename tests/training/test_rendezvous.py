"""How ranks find each other, in one process; tests/training/test_distributed.py has several processes."""

import datetime
import os
import socket
import threading
from types import SimpleNamespace

import pytest
import torch
from torch.distributed import HashStore, TCPStore

from transduce.system.errors import UserError
from transduce.training import rendezvous
from transduce.training.rendezvous import (
    FINISHED,
    FailureDetector,
    _own_address,
    _roll_call,
    _sentence,
    _store,
    environment_number,
    meet,
)

KEY = "transduce/rank 0"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a process that nobody has started to meet others."""
    for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "NUMBER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> TCPStore:
    """The store of torchrun, which an earlier start has used."""
    store = TCPStore("localhost", 0, None, True, wait_for_workers=False)
    monkeypatch.setenv("MASTER_PORT", str(store.port))
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setattr(rendezvous, "STALE_TIMEOUT", datetime.timedelta(milliseconds=50))
    store.set(KEY, f"localhost {free_port()}")
    return store


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])


def test_a_number_of_the_environment_has_a_default_or_is_needed(monkeypatch):
    assert (environment_number("NUMBER", 3), environment_number("NUMBER", 0)) == (3, 0)
    for text in ("", "-1", "1.5", "x"):
        monkeypatch.setenv("NUMBER", text)
        with pytest.raises(UserError, match=f"NUMBER is '{text}', but it must be a number"):
            environment_number("NUMBER", None if not text else 3)
    monkeypatch.setenv("NUMBER", "07")
    assert environment_number("NUMBER") == environment_number("NUMBER", 3) == 7


@pytest.mark.parametrize("address", ["", "localhost"])
def test_ranks_share_a_store_at_the_given_place(address, monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", address)
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    first, second = _store(0), _store(1)
    second.set("key", "value")
    assert first.get("key") == b"value" and first.port == second.port
    assert first.timeout == second.timeout == datetime.timedelta(seconds=rendezvous.JOIN_SECONDS)


def test_torchruns_store_only_tells_the_address_of_a_new_one(agent):
    first = _store(0)
    address, port = agent.get(KEY).decode().split()
    assert (address, int(port)) == ("127.0.0.1", first.port) and first.port != agent.port
    second = _store(1)
    second.set("key", "value")
    assert first.get("key") == b"value" and not agent.check(["key"])
    assert second.timeout == first.timeout == datetime.timedelta(seconds=rendezvous.JOIN_SECONDS)


def test_the_address_of_a_dead_rank_0_is_asked_for_again(agent, monkeypatch):
    new: list[TCPStore] = []
    later = threading.Timer(0.1, lambda: new.append(_store(0)))
    later.start()
    second = _store(1)
    later.join()
    assert second.port == new[0].port
    agent.set(KEY, f"localhost {free_port()}")
    monkeypatch.setattr(rendezvous, "TORCHRUN_JOIN_SECONDS", 0.0)
    with pytest.raises(UserError, match=r"Rank 1 of 2 can't connect to the others: .*MASTER_PORT"):
        meet(1, 2)


def test_the_own_address_is_that_in_the_network_of_the_other():
    assert _own_address("localhost", 9) == "127.0.0.1"
    assert _own_address("no host", 9) == "no host"


def test_the_roll_call_waits_for_all_names():
    store = HashStore()
    names = [f"Rank {n} (process {os.getpid()} on {socket.gethostname()})" for n in range(3)]
    found: dict[int, list[str]] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: _roll_call(store, n, 3)}))
        for n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(3), names)
    with pytest.raises(UserError, match="Two processes have the same rank: Rank 1 "):
        _roll_call(store, 1, 3)


@pytest.mark.parametrize(("is_torchrun", "seconds"), [(False, 300), (True, 45)])
def test_a_missing_rank_is_named_after_20_seconds(is_torchrun, seconds, monkeypatch, capsys):
    """Pods of a cluster may start minutes apart; torchrun starts all ranks at once."""
    if is_torchrun:
        monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    waited: list[float] = []

    class Store(HashStore):
        """A store in which nobody appears, without the time to wait for it."""

        def wait(self, keys: list[str], timeout: datetime.timedelta) -> None:
            waited.append(timeout.total_seconds())
            super().wait(keys, datetime.timedelta(milliseconds=1))

    for expected in ([20.0, seconds - 20.0], [seconds, 1.0]):
        with pytest.raises(
            UserError, match=rf"heard from rank 1 for {seconds} seconds\. Start all"
        ):
            _roll_call(Store(), 0, 2)
        said = " ".join(capsys.readouterr().err.split())
        assert f"rank 1: was it killed, or never started? Waiting up to {seconds} seconds." in said
        assert waited[-2:] == expected
        monkeypatch.setattr(rendezvous, "NOTICE_SECONDS", 900.0)  # longer than all


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UserError("There is\n no room.", "Make some."), "There is no room. Make some."),
        (ValueError("of  a\nkind"), "ValueError: of a kind"),
        (KeyboardInterrupt(), "it was interrupted."),
        (SystemExit(1), "it was interrupted."),
    ],
)
def test_an_error_is_a_sentence_for_the_other_ranks(error, said):
    assert _sentence(error) == said


@pytest.mark.parametrize("rank", [0, 1])
def test_rank_0_tells_all_others_why_it_ends_and_others_tell_rank_0(rank, monkeypatch):
    """What is sent and heard, with a group in which every other rank has finished."""
    sent: list[tuple[int, str]] = []

    def send(message: torch.Tensor, peer: int, group: str) -> None:
        assert (len(message), group) == (rendezvous.MESSAGE_BYTES, "heartbeats")
        sent.append((peer, bytes(message.tolist()).rstrip(b"\0").decode("utf-8", "ignore")))
        if peer == 2:
            raise RuntimeError("it is dead")

    def recv(message: torch.Tensor, peer: int, group: str) -> None:
        assert (peer in peers, group) == (True, "heartbeats")
        message[: len(FINISHED)] = torch.tensor(list(FINISHED.encode()), dtype=torch.uint8)

    def new_group(backend: str, timeout: datetime.timedelta) -> str:
        assert (backend, timeout) == ("gloo", datetime.timedelta(minutes=2))
        return "heartbeats"

    # Of torch.distributed, which needs a process for each rank.
    fake = SimpleNamespace(new_group=new_group, send=send, recv=recv)
    monkeypatch.setattr(rendezvous, "dist", fake)
    pauses: list[float] = []
    monkeypatch.setattr(rendezvous.time, "sleep", pauses.append)
    peers = [1, 2, 3] if rank == 0 else [0]
    for error, text, pause in (
        (None, FINISHED, []),
        (UserError("No room."), "me ended: No room.", []),
        (KeyboardInterrupt(), "me ended: it was interrupted.", []),
        (ValueError("ü" * 600), f"me ended: ValueError: {'ü' * 501}", [rendezvous.CAUSE_SECONDS]),
    ):
        names = ["others"] * 4
        names[rank] = "me"
        before = set(threading.enumerate())
        detector = FailureDetector(names, rank)
        assert all(thread.daemon for thread in {*threading.enumerate()} - before), "none may hang"
        detector.close(error)
        assert sent == [(peer, text) for peer in peers] and pauses == pause
        sent.clear()


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("heard", "said"),
    [
        (["", "", "you ended: no room."], "you ended: no room."),
        (["", None], "you died: it was killed (out of memory?), or its machine is down."),
        (["", FINISHED], ""),
    ],
)
def test_a_peer_that_ends_ends_this_process_and_rank_0_tells_the_others(
    heard, said, rank, monkeypatch, capsys
):
    sent: list[tuple[int, str]] = []
    exits: list[int] = []
    messages = {peer: iter(heard if peer in (0, 1) else [FINISHED]) for peer in range(3)}

    def send(message: torch.Tensor, peer: int, group: None) -> None:
        assert group is None
        sent.append((peer, bytes(message.tolist()).rstrip(b"\0").decode()))

    def recv(message: torch.Tensor, peer: int, group: None) -> None:
        text = next(messages[peer])
        if text is None:
            raise RuntimeError(f"connection closed {group or ''}")
        content = text.encode().ljust(len(message), b"\0")
        message[:] = torch.tensor(list(content), dtype=torch.uint8)

    fake = SimpleNamespace(new_group=lambda **_: None, send=send, recv=recv)
    monkeypatch.setattr(rendezvous, "dist", fake)
    monkeypatch.setattr(os, "_exit", exits.append)
    detector = FailureDetector(["you", "you", "other"], rank)
    for listener in detector._listeners:
        listener.join()
    peers = [1, 2] if rank == 0 else [0]
    assert sent == [(peer, said) for peer in peers if said]
    assert exits == [1] * bool(said)
    assert capsys.readouterr().err == (f"transduce: {said}\n" if said else "")
    monkeypatch.setattr(rendezvous, "HEARTBEAT_SECONDS", 0.001)
    detector.close()
    sent.clear()
    FailureDetector._beat(detector)
    assert sent == [], "it has ended"
    detector._ending.clear()
    beats = threading.Thread(target=detector._beat)
    beats.start()
    while len(sent) < 4:
        pass
    detector._ending.set()
    beats.join()
    assert {text for _, text in sent} == {""} and {peer for peer, _ in sent} == {*peers}

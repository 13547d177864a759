"""Connections between the processes of one training, by which all learn at once that one has ended, and why.

Rank 0 listens, the others call it. Whoever ends in good order says so, whoever fails says why; a connection that breaks
without a word belonged to a process that was killed. What one says, rank 0 tells all others, and every process ends:
it would wait for ever, or for half an hour, for a sum that never comes.

Started by hand, processes call before they load PyTorch, which takes many seconds in which they may be killed. Started
by torchrun they can't, whose store tells them where rank 0 is; but torchrun ends all itself where one is killed.
"""

import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TextIO

from transduce.system.errors import UserError
from transduce.system.journal import say

END = "end"
JOIN = 300.0  # seconds for all to come: pods of a cluster may start minutes apart
SILENCE = 20.0  # seconds of waiting before a line tells for whom
ANSWER_SECONDS = 10.0
LONGEST_WORD = 1000  # characters of a greeting
SECOND_THOUGHTS = 5.0  # seconds in which another's end may turn out to be the cause of an error here
KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}  # a machine without power is found in 30 seconds


class Lifeline:
    """This process's connections: of rank 0 to all others, of the others to rank 0."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.name = f"Rank {rank} (process {os.getpid()} on {socket.gethostname()})"
        self._peers: list[socket.socket] = []
        self._over = threading.Event()  # this process ends by itself

    def fail(self, error: BaseException) -> None:
        """Tell the others why this process ends; if the reason may be that another has ended, wait for word of that."""
        if not isinstance(error, (UserError, KeyboardInterrupt, SystemExit)):
            time.sleep(SECOND_THOUGHTS)
        self._over.set()
        self._tell(f"{self.name} ended: {_sentence(error)}")

    def close(self) -> None:
        """Say that this process ends in good order."""
        self._over.set()
        self._tell(END)

    def follow(self, peer: socket.socket, words: TextIO, name: str) -> None:
        """From now on, end with this peer, of which `words` reads what it says."""
        _keep_alive(peer)
        peer.settimeout(None)
        self._peers.append(peer)
        threading.Thread(target=self._wait, args=(words, name), daemon=True).start()

    def _wait(self, words: TextIO, name: str) -> None:
        word = ""
        with suppress(OSError):
            word = words.readline().strip()
        if word == END or self._over.is_set():
            return
        cause = word or f"{name} is gone without a word: it was killed (for want of memory?), or its machine is down."
        self._tell(cause)
        print(f"transduce: {cause}", file=sys.stderr, flush=True)
        os._exit(1)  # the main thread may be waiting where no exception reaches it

    def _tell(self, word: str) -> None:
        for peer in self._peers:
            with suppress(OSError):
                peer.sendall(f"{word}\n".encode())


class Listener:
    """Rank 0's end, which others may call from now on."""

    def __init__(self, addresses: Sequence[str], world: int, port: int = 0, token: str = "") -> None:
        """addresses: by which other machines may reach this one; port, token: 0 and "" let the system choose.

        Raises UserError if the port is taken.
        """
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        try:
            self._server = socket.create_server(("", port), family=family, backlog=max(world, 128), dualstack_ipv6=both)
        except OSError as error:
            raise UserError(f"Rank 0 can't listen at port {port}: {error.strerror}; choose another one.") from None
        self._token, self._missing = token or secrets.token_hex(), set(range(1, world))
        self.announcement = json.dumps([list(addresses), self._server.getsockname()[1], self._token])

    def accept(self, welcome: str, seconds: float) -> Lifeline:
        """Wait for the calls of all other ranks and answer each with `welcome`; strangers are sent away.

        Raises UserError, which those who have come are told, too, if one does not come, or two have the same number.
        """
        lifeline, patience = Lifeline(0), _Patience(seconds)
        try:
            with self._server:
                self._server.settimeout(0.2)
                while self._missing:
                    missing = ", ".join(map(str, sorted(self._missing)))
                    patience.wait(f"{lifeline.name} has not heard of rank {missing}")
                    with suppress(TimeoutError):
                        self._answer(self._server.accept()[0], welcome, lifeline)
        except UserError as error:
            lifeline.fail(error)
            raise
        return lifeline

    def _answer(self, peer: socket.socket, welcome: str, lifeline: Lifeline) -> None:
        peer.settimeout(ANSWER_SECONDS)
        words = peer.makefile(encoding="utf-8")
        try:
            token, rank, name = json.loads(words.readline(LONGEST_WORD))
            known = secrets.compare_digest(str(token).encode(), self._token.encode())
        except (OSError, ValueError, TypeError):
            known = False
        if not known or rank not in self._missing:
            words.close()
            peer.close()
            if known:
                raise UserError(
                    f"{name} is the second of its number, or beyond WORLD_SIZE; give each process its own RANK."
                )
            return
        self._missing.remove(rank)
        with suppress(OSError):  # whose end `follow` will find
            peer.sendall(f"{welcome}\n".encode())
        lifeline.follow(peer, words, name)


class Welcome(NamedTuple):
    """What a call to rank 0 leads to."""

    lifeline: Lifeline
    address: str  # of rank 0, as it was reached
    text: str


class Knock(NamedTuple):
    """A call to rank 0 that is not answered yet."""

    lifeline: Lifeline
    address: str
    peer: socket.socket
    words: TextIO

    def enter(self, seconds: float) -> Welcome:
        """Wait for the answer; raises UserError if rank 0 has gone."""
        self.peer.settimeout(seconds)
        text = ""
        with suppress(OSError):
            text = self.words.readline().strip()
        if not text:
            raise UserError(
                f"Rank 0 on {self.address} is gone without a word: it was killed, or has another WORLD_SIZE than "
                f"{self.lifeline.name}."
            )
        self.lifeline.follow(self.peer, self.words, f"Rank 0 on {self.address}")
        return Welcome(self.lifeline, self.address, text)


def arrive() -> Listener | Knock | None:
    """Listen, or call, where RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say; None: alone, or started by torchrun.

    Raises UserError if rank 0 can't be reached.
    """
    if (world := number("WORLD_SIZE", 1)) == 1 or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return None
    rank, addresses, port = number("RANK"), [os.environ.get("MASTER_ADDR") or "localhost"], number("MASTER_PORT")
    if port > 65535:
        raise UserError(f"MASTER_PORT is {port}; the last port is 65535.")
    token = f"one of {world}"
    if rank == 0:
        return Listener(addresses, world, port, token)
    lifeline, patience = Lifeline(rank), _Patience(JOIN)
    while not (knock := next(_knocks(addresses, port, token, lifeline), None)):
        patience.wait(f"{lifeline.name} can't reach rank 0 at {addresses[0]}, port {port}")
        time.sleep(0.2)
    return knock


def call(announcement: Callable[[], str], rank: int, seconds: float) -> Welcome:
    """Reach rank 0 at what it announces, which may for a while be what an earlier one did that has died.

    Raises UserError if rank 0 can't be reached.
    """
    lifeline, patience = Lifeline(rank), _Patience(seconds)
    while True:
        addresses, port, token = json.loads(announcement())
        for knock in _knocks(addresses, port, token, lifeline):
            with suppress(UserError):
                return knock.enter(ANSWER_SECONDS)
        patience.wait(f"{lifeline.name} can't reach rank 0 at {' or '.join(addresses)}, port {port}")
        time.sleep(0.2)


def number(name: str, default: int | None = None) -> int:
    """A number of the environment; raises UserError if it must be there and is not."""
    text = os.environ.get(name, "")
    if not text and default is not None:
        return default
    if not text.isdecimal():
        raise UserError(
            f"WORLD_SIZE says that several processes train together, but {name} is '{text}': start them with torchrun, "
            "or unset WORLD_SIZE."
        )
    return int(text)


def _knocks(addresses: Sequence[str], port: int, token: str, lifeline: Lifeline) -> Iterator[Knock]:
    """A call to each address that can be reached."""
    for address in addresses:
        with suppress(OSError):
            peer = socket.create_connection((address, port), timeout=ANSWER_SECONDS)
            _keep_alive(peer)
            peer.sendall((json.dumps([token, lifeline.rank, lifeline.name]) + "\n").encode())
            yield Knock(lifeline, address, peer, peer.makefile(encoding="utf-8"))


def _keep_alive(peer: socket.socket) -> None:
    """Have the system find out if the other machine is gone."""
    for option, value in KEEPALIVE.items():
        if hasattr(socket, option):  # some are Linux's own
            peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class _Patience:
    """Waiting: in silence at first, then a line says for what, in the end it is an error."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._began, self._silent = seconds, time.monotonic(), True

    def wait(self, what: str) -> None:
        """Say, or raise, that this is still so if it has been for long."""
        waited = time.monotonic() - self._began
        if waited > self._seconds:
            raise UserError(f"{what} for {self._seconds:.0f} seconds; start all together, and see to the network.")
        if waited > SILENCE and self._silent:
            self._silent = False
            say(f"{what}: was it killed, or never started? It is waited for, {self._seconds:.0f} seconds in all.")


def _sentence(error: BaseException) -> str:
    """What is wrong, on one line."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return "it was interrupted."
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"

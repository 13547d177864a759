"""`transduce serve`."""

import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.commands.output import print_table
from transduce.commands.recipes import Files
from transduce.decoding.engines.engine import Choice
from transduce.system.errors import UserError
from transduce.system.journal import say
from transduce.system.machine import lower_priority

if TYPE_CHECKING:
    from transduce.wings.serving.languages import Served


def serve(
    *models: Path,
    host: str = "127.0.0.1",
    port: int = 5000,
    keys: Path | None = None,
    new_key: str = "",
    insecure: bool = False,
    proxy: Files = (),
    engine: Choice = "auto",
    show_limits: bool = False,
    limit: Files = (),
) -> None:
    """Serve models: a web page, and the API of LibreTranslate.

    It ends with Ctrl-C or SIGTERM, when everything that it has accepted is answered.

    Args:
        models: Model folders, each for another pair of languages.
        host: The address to listen at; 0.0.0.0 is every one of this machine, and needs --keys or --insecure.
        port: The port to listen at; 0: a free one.
        keys: A file with the keys that may use the server; without it, whoever reaches it may.
        new_key: Make a key for somebody of this name, print it, add its hash to --keys, and end.
        insecure: Let everybody in who reaches a public address.
        proxy: The address of a proxy, or its network, whose X-Forwarded-For is to be believed; --proxy again for more.
        engine: What searches, as for `transduce translate`.
        show_limits: Print what is accepted, and end.
        limit: limits.NAME=NUMBER: another limit; --limit again for more. They are listed by --show-limits.
    """
    try:
        from transduce.wings.serving import network
        from transduce.wings.serving.access import is_local
        from transduce.wings.serving.api import application
        from transduce.wings.serving.keys import Keys, add_key, read_keys
        from transduce.wings.serving.languages import by_direction
        from transduce.wings.serving.limits import limits_from, rows
    except ImportError as error:
        raise UserError(f"Serving needs more packages ({error.name}): pip install 'transduce[serve]'.") from None

    limits = limits_from(dict(_assignment(each) for each in limit))
    if show_limits:
        table = [(each.name, f"{each.value:,}", each.unit, each.help) for each in rows(limits)]
        print_table([("limit", "value", "unit", "meaning"), *table])
        return
    if new_key:
        if keys is None:
            raise UserError("Say with --keys to which file the hash of the new key is to be added.")
        print(add_key(keys, new_key))
        return
    if not models:
        raise UserError("Name one model folder or more: transduce serve MODEL.")
    for address in proxy:
        _check_proxy(address)
    local = is_local(host)
    if not local and keys is None and not insecure:
        raise UserError(
            f"At {host} others can reach this server: give --keys FILE (--new-key makes one), or --insecure."
        )
    owners = read_keys(keys) if keys else Keys({})
    listening = _listen(host, port)  # before the models are loaded, which takes longer
    with ThreadPoolExecutor(1, initializer=lower_priority) as loading:  # the engines' threads, too
        served = by_direction([loading.submit(_load, folder, engine).result() for folder in models])
    app = application(served, owners, limits, local=local and not proxy)
    for direction, each in served.items():
        say(f"{direction.source} → {direction.target}: {each.folder}, {each.translator.engine.name}")
    shown = f"[{host}]" if ":" in host else host
    say(f"Listening at http://{shown}:{listening.getsockname()[1]}/")
    network.run(app, listening, limits, list(proxy))


def _load(folder: Path, engine: Choice) -> "Served":
    from transduce import model_folder
    from transduce.decoding.loading import load
    from transduce.wings.serving.languages import Direction, Served

    data = model_folder.read_config(folder).data
    translator = load(folder, engine=engine)
    return Served(str(folder), Direction(data.source, data.target), translator, data.max_length)


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"'{text}' is not a limit; limits are written limits.NAME=NUMBER.")
    return name, value


def _check_proxy(address: str) -> None:
    """Raises UserError for what no client's address could be."""
    try:
        ipaddress.ip_network(address)
    except ValueError:
        raise UserError(
            f"'{address}' is not the address of a proxy: write it like 10.0.0.1, or its network like 10.0.0.0/24."
        ) from None


def _listen(host: str, port: int) -> socket.socket:
    """Raises UserError if that is not possible."""
    if not 0 <= port <= 65535:  # getaddrinfo would take the rest of a division
        raise UserError(f"There is no port {port}: they are from 1 to 65535; 0: a free one.")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.create_server(address[:2], family=family, backlog=1024)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or the end of an answer waits for 40 ms
        return listening
    except (OSError, OverflowError, UnicodeError) as error:
        raise UserError(f"Can't listen at {host}, port {port}: {error}; choose another --host or --port.") from None

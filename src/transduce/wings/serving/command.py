"""`transduce serve`."""

import errno
import ipaddress
import math
import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.commands.recipes import Files
from transduce.decoding.registry import EngineName
from transduce.system.console import log, print_table
from transduce.system.errors import UserError, needing
from transduce.wings.serving.keys import Contributors

if TYPE_CHECKING:
    from transduce.wings.serving.corrections import Corrections
    from transduce.wings.serving.store import ModelStore


def serve(
    *models: str,
    host: str = "127.0.0.1",
    port: int = 5000,
    keys: Path | None = None,
    new_key: str = "",
    insecure: bool = False,
    proxy: Files = (),
    cors: Files = (),
    engine: EngineName = "auto",
    memory_limit: str = "",
    memory: str = "",
    corrections: Contributors = "keys",
    learn: bool = False,
    glossaries: Path | None = None,
    show_limits: bool = False,
    limit: Files = (),
) -> None:
    """Serve models through a web page and LibreTranslate's API.

    After Ctrl-C or SIGTERM, the server answers the requests that it has accepted, and exits.

    Args:
        models: Model folders, as FOLDER or NAME=FOLDER. By default, a model has the name of its folder. The first model
            of a language pair is the default; requests choose another model by its name.
        host: The address to listen on. 0.0.0.0 means all addresses of this machine and needs --keys or --insecure.
        port: The port to listen on; 0 means any free port.
        keys: A file of API keys; requests must send one of them. Without --keys, access is open.
        new_key: Make an API key for this name, print the key, add its hash to the file of --keys, and exit.
        insecure: Without --keys, listen even on an address that other machines can reach.
        proxy: The address or network of a proxy whose X-Forwarded-* and Forwarded headers are trusted. May be repeated.
        cors: Let web pages of this origin use the server, such as https://example.org; * allows every origin. May be
            repeated.
        engine: The engine; `transduce translate --help` describes the choices.
        memory_limit: The memory for the weights of all models, such as 4G. Models are then loaded when they are first
            used, and the least recently used ones are unloaded. By default, all models are loaded at the start.
        memory: A translation memory: a bilingual file (such as memory.tmx or memory.tsv), a folder of such files, or a
            database that is made if it is missing. A text that it holds is not translated again. Corrections are kept
            in the database; that of memory.tmx is memory.tmx.sqlite.
        corrections: With --memory, whose corrections are kept: of the clients with `keys`, each for its own answers; of
            `anyone`, for all answers if there are no keys; of `nobody`.
        learn: With --memory, learn the corrections of all clients while nobody uses the server, as `transduce learn`
            does.
        glossaries: A database, made if it is missing, for the glossaries of DeepL's clients and the characters that
            each key has used. By default, both last until the server ends.
        show_limits: Print all limits and exit.
        limit: Set a limit, as limits.NAME=NUMBER; --show-limits prints all limits. May be repeated.
    """
    with needing("serve", "Serving"):
        from transduce.model_folder import read_config
        from transduce.training.facts import licence
        from transduce.wings.serving import network
        from transduce.wings.serving.access import is_local
        from transduce.wings.serving.api import application
        from transduce.wings.serving.catalogue import named_folders
        from transduce.wings.serving.glossaries import Glossaries
        from transduce.wings.serving.keys import Keys, add_key
        from transduce.wings.serving.limits import limits_from, memory_from, rows

    limits = limits_from(limit)
    if show_limits:
        print_table([("limit", "value", "unit", "meaning"), *rows(limits)])
        return
    if new_key:
        if keys is None:
            raise UserError(
                "--new-key needs a file for the hash of the new key.",
                "Give --keys FILE, too.",
            )
        print(add_key(keys, new_key))
        return
    if not models:
        raise UserError(
            "There is no model to serve.",
            "Name at least one model folder: transduce serve MODEL.",
        )
    networks = list(map(_network, proxy))
    local = is_local(host)
    origins = _origins(cors)
    if not local and keys is None and not insecure:
        raise UserError(
            f"Other machines can reach {host}.",
            "Give --keys FILE (--new-key makes a key), or --insecure.",
        )
    if local and keys is None and any(network.is_loopback for network in networks):
        log(
            "Warning: with this --proxy, web pages in a browser on this machine can use the server. Give --keys, too."
        )
    if learn and not memory:
        raise UserError(
            "There are no corrections to learn without a memory.", "Give --memory, too.", "learn"
        )
    owners = Keys(keys)
    listening = _listen(host, port)  # fails before the models are loaded
    store = _store(
        named_folders(models), engine, memory_from(memory_limit) if memory_limit else math.inf
    )
    kept = _corrections(memory, corrections, store) if memory else None
    app = application(
        store,
        owners,
        limits,
        local=local,
        proxied=bool(proxy),
        origins=origins,
        corrections=kept,
        learns=learn,
        glossaries=Glossaries(glossaries),
    )
    if not memory_limit:
        store.load_all()
    for model in store.models:
        state = model.version.loaded.engine.name if model.version else "not loaded yet"
        for source, target in model.directions:
            log(f"{source} → {target}: {model.folder}, {state}")
        for fact in licence(read_config(model.folder)):
            log(f"Licence of {model.folder}: {fact.text}")
    log(f"Listening on http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/")
    network.run(app, listening, limits, list(proxy))
    os._exit(0)  # an engine's batch and the load of a model can take minutes, and can't be stopped


def _network(address: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Parse an address of --proxy. Raises UserError if it is no address."""
    try:
        return ipaddress.ip_network(address)
    except ValueError:
        raise UserError(
            f"'{address}' is not an IP address or network.",
            "Write, for example, 10.0.0.1 or 10.0.0.0/24.",
            "proxy",
        ) from None


def _origins(names: Sequence[str]) -> list[str]:
    """Check the origins of --cors, and return them as browsers write them."""
    for name in names:
        if name != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://(?:(?![/?#@])[!-~])+/?", name):
            raise UserError(
                f"--cors: '{name}' is not an origin.",
                "Write, for example, https://example.org, or *.",
            )
    lower = [name.removesuffix("/").lower() for name in names]
    return [re.sub("^(http:.*):80$|^(https:.*):443$", r"\1\2", name) for name in lower]


def _store(folders: Sequence[tuple[str, Path]], engine: EngineName, limit: float) -> "ModelStore":
    """Describe the models with these names and folders. Raises UserError if a folder is damaged."""
    from transduce.decoding.loading import load
    from transduce.wings.serving.models import Model
    from transduce.wings.serving.store import ModelStore

    models = [Model.read(name, folder) for name, folder in folders]
    return ModelStore(models, lambda path: load(path, engine=engine), limit)


def _corrections(memory: str, contributors: Contributors, store: "ModelStore") -> "Corrections":
    """Open the translation memory for the directions of all models. Raises UserError if it is unusable."""
    from transduce.wings.memories.opening import open_memory
    from transduce.wings.serving.corrections import Corrections

    directions = dict.fromkeys(each for model in store.models for each in model.directions)
    return Corrections(open_memory(memory, [*directions], make=True), contributors)


def _listen(host: str, port: int) -> socket.socket:
    """Open the listening socket. Raises UserError if the address or port can't be used."""
    if not 0 <= port <= 65535:  # getaddrinfo takes ports modulo 65536
        raise UserError(
            f"Invalid port {port}.", "Choose a port from 1 to 65535, or 0 for any free port."
        )
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.create_server(address[:2], family=family, backlog=1024)
        # Nagle's algorithm delays answers by 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            other = port + 1 if port < 65535 else 0
            raise UserError(
                f"Port {port} of {host} is in use.", f"Choose another: --port {other}."
            ) from None
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"Can't listen on {host}, port {port}: {reason}.",
            "Choose another --host or --port.",
        ) from None

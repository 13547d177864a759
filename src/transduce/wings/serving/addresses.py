"""Reads the address of the server from a request's headers, and from those that a proxy adds."""

import re
from collections.abc import Container, Sequence

from starlette.datastructures import URL, Headers
from starlette.types import Scope

# A host and its port, without characters that have a meaning elsewhere in a URL or in HTML.
AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{0,5}))?", re.IGNORECASE)
ORIGIN = re.compile(f"[a-z][a-z0-9+.-]*://({AUTHORITY.pattern})", re.IGNORECASE)
# Absolute form of a request target.
ABSOLUTE_FORM = re.compile("[a-z][a-z0-9+.-]*://([^/?#]*)", re.IGNORECASE)
DEFAULT_PORTS = "80", "443"
# RFC 7239.
FORWARDED = re.compile(
    r'(?<![^,;\s])(for|proto|host)=(?:"([^",\\]*)"|([^",;\s]*))(?=\s*(?:[,;]|$))', re.IGNORECASE
)
# Patterns of the valid values of X-Forwarded-NAME.
FORWARDED_VALUES = {
    "proto": re.compile("https?"),
    "host": AUTHORITY,
    "port": re.compile("[0-9]{1,5}"),
    "prefix": re.compile(r"(?:/(?!\.{1,2}(?:/|$))(?:[\w.~-]|%[0-9a-fA-F]{2})+)*/?", re.ASCII),
}


def host_of(authority: str) -> str | None:
    """The host in an authority such as localhost:5000, in lower case, or None if the authority is malformed."""
    parts = AUTHORITY.fullmatch(authority)
    return parts[1].lower().strip("[]") if parts else None


def as_forwarded(scope: Scope, proxies: Container[str | None]) -> Scope:
    """The request with forwarding headers only if `proxies` sent them and they are valid.

    X-Forwarded-Proto, -Host and -Port get the value of the proxy that the client has connected to. X-Forwarded-Prefix
    gets the prefixes of all proxies. If a proxy writes Forwarded instead, the headers are made from it.
    """
    headers = Headers(scope=scope)
    kept = [
        (name, value)
        for name, value in headers.raw
        if name != b"forwarded" and not name.startswith(b"x-forwarded-")
    ]
    if (scope.get("client") or ("",))[0] in proxies:
        lists = {name: _values(headers, name) for name in ("for", *FORWARDED_VALUES)}
        addresses = lists.pop("for")
        # Addresses before those of the trusted proxies may be made up by the client.
        place = len(addresses) - 1
        while place > 0 and _address(addresses[place]) in proxies:
            place -= 1
        found = {"for": ", ".join(addresses)}
        for name, values in lists.items():
            own = values[place : place + 1] if len(values) == len(addresses) else values[:1]
            value = (
                "".join(each.rstrip("/") for each in values) if name == "prefix" else "".join(own)
            )
            value = value.lower() if name == "proto" else value
            if FORWARDED_VALUES[name].fullmatch(value):
                found[name] = value
        kept += [
            (f"x-forwarded-{name}".encode(), value.encode("latin-1"))
            for name, value in found.items()
            if value
        ]
    return {**scope, "headers": kept}


def public_url(url: URL, headers: Headers) -> str:
    """The address under which the client of a proxy reaches `url`, by the headers that `as_forwarded` has checked."""
    parts = AUTHORITY.fullmatch(headers.get("x-forwarded-host", url.netloc))
    if parts and not {"x-forwarded-host", "x-forwarded-port"}.isdisjoint(headers):
        port = headers.get("x-forwarded-port", parts[2])
        # With https, the port 80 comes from a proxy behind the proxy that ends TLS.
        url = url.replace(
            netloc=parts[1] if port in (None, "", *DEFAULT_PORTS) else f"{parts[1]}:{port}"
        )
    return str(url.replace(path=headers.get("x-forwarded-prefix", "") + url.path))


def _values(headers: Headers, name: str) -> Sequence[str]:
    """The values of X-Forwarded-NAME, or else the values of Forwarded."""
    values = ",".join(headers.getlist(f"x-forwarded-{name}")).split(",")
    if not any(map(str.strip, values)):
        pairs = FORWARDED.findall(",".join(headers.getlist("forwarded")))
        values = [quoted or plain for known, quoted, plain in pairs if known.lower() == name]
    return [value.strip() for value in values if value.strip()]


def _address(node: str) -> str:
    """The IP address of a node such as 192.0.2.1:80, [2001:db8::1] or 2001:db8::1."""
    return host_of(node) or node

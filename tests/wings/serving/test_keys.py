"""Tests of transduce/wings/serving/keys.py."""

import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from command_line import run
from servers import Echo
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from requests_of_tests import WORDED, client, guard
from transduce.wings.serving import network
from transduce.wings.serving.api import application
from transduce.wings.serving.deepl import DEEPL
from transduce.wings.serving.keys import Keys, add_key
from transduce.wings.serving.limits import Limits

# -- keys


@pytest.fixture
def key(tmp_path: Path) -> str:
    return add_key(tmp_path / "keys", "alice")


def test_everything_needs_a_key_but_the_page_and_health(
    tokenizer: Tokenizer, engine: Echo, tmp_path: Path, key: str
) -> None:
    app = guard(tokenizer, engine, Keys(tmp_path / "keys"))
    page = {
        path.name for path in Path(application.__code__.co_filename).with_name("page").iterdir()
    }
    free = {
        "/",
        "/health",
        "/download_file/x",
        "/drawing.js",
        "/drawing.css",
        "/languages",
        "/frontend/settings",
        "/docs",
        "/openapi.json",
    }
    free |= {f"/{name}" for name in page - {"index.html"}}
    with client(app) as asking:
        seen = set()
        routers = [getattr(route, "original_router", None) for route in app.app.routes]
        included = [route for router in routers if router for route in router.routes]
        assert len(included) > 5
        for route in (*included, *(route for route in app.app.routes if hasattr(route, "path"))):
            path = re.sub("{.*?}", "x", route.path)
            for method in route.methods:
                status = asking.request(method, path).status_code
                refused = 403 if path.startswith(DEEPL.prefixes) else 401
                assert (status == refused) == (path not in free), (method, path, status)
                sent = {"X-API-Key": key, "Authorization": f"Bearer {key}"}
                assert asking.request(method, path, headers=sent).status_code not in (401, 403)
                seen.add(path)
        assert seen > free and {"/translate", "/translate_file", "/metrics"} < seen - free
        # Which paths there are is nobody's business.
        assert asking.get("/nowhere").status_code == 401


def test_a_key_may_come_in_many_ways(
    tokenizer: Tokenizer, engine: Echo, tmp_path: Path, key: str
) -> None:
    with client(guard(tokenizer, engine, Keys(tmp_path / "keys"))) as asking:
        long = WORDED | {"q": "ka\n" * 6000}  # with the key at its end, no more than 64 KiB
        file = {"file": ("a.txt", b"ka lo")}
        for wrong, status in (("", 200), ("x", 403)):
            for answer in (
                asking.post(
                    "/translate", json=WORDED, headers={"Authorization": f"Bearer {key}{wrong}"}
                ),
                asking.post(
                    "/translate", json=WORDED, headers={"authorization": f"bearer  {key}{wrong} "}
                ),
                asking.post("/translate", json=WORDED, headers={"X-API-Key": key + wrong}),
                asking.post("/translate", json=WORDED, params={"api_key": key + wrong}),
                asking.post("/translate", json=WORDED | {"api_key": key + wrong}),
                asking.post("/translate", json=long | {"api_key": key + wrong}),
                asking.post("/translate", data=WORDED | {"api_key": key + wrong}),
                asking.post("/translate_file", data=WORDED | {"api_key": key + wrong}, files=file),
                asking.get("/languages", params={"api_key": key + wrong}),
            ):
                assert answer.status_code == status, answer.text
        beyond = asking.post("/translate", json=WORDED | {"q": "ka\n" * 40_000, "api_key": key})
        assert beyond.status_code == 401 and beyond.headers["www-authenticate"] == "Bearer"
        for nonsense in ({"api_key": 1}, {"api_key": None}, {"api_key": [key]}, {}):
            assert asking.post("/translate", json=WORDED | nonsense).status_code == 401
        # At once.
        assert asking.post("/translate", content=b'"' + b'\\"' * 30_000).status_code == 401


def test_key_file_by_hand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "keys"
    assert run(capsys, "serve", "--new-key", "alice")[0] == 2
    status, key, _ = run(capsys, "serve", "--new-key", "alice", "--keys", file)
    assert status == 0 and re.fullmatch(r"[\w-]{43}\n", key)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and key.strip() not in file.read_text()
    assert Keys(file).owner(key.strip()) == "alice" and Keys(file).owner(key) is None
    status, _, error = run(capsys, "serve", "--new-key", "alice", "--keys", file)
    assert status == 2 and "already" in error
    assert run(capsys, "serve", "--new-key", "a b", "--keys", file)[0] == 2
    file.write_text(file.read_text().rstrip("\n"))  # by an editor
    other = add_key(file, "bob")
    assert [Keys(file).owner(each) for each in (key.strip(), other, "")] == ["alice", "bob", None]
    for damaged in (
        "",
        "# none\n",
        "alice\n",
        "alice\tx\n",
        "\udcff",
        file.read_text() + "bob\t" + "0" * 64 + "\n",
    ):
        (tmp_path / "damaged").write_text(damaged, errors="surrogateescape")
        status, _, error = run(capsys, "serve", tmp_path, "--keys", tmp_path / "damaged")
        assert status == 2 and "damaged" in error and "Traceback" not in error
    for missing in (tmp_path / "none", tmp_path):
        assert run(capsys, "serve", tmp_path, "--keys", missing)[0] == 2
    assert run(capsys, "serve", "--new-key", "alice", "--keys", tmp_path)[0] == 2


def test_mistakes_in_a_file_of_keys_have_their_line(tmp_path: Path) -> None:
    file = tmp_path / "the keys"
    line = f"alice\t{'0' * 64}\n"
    add = f"transduce serve --new-key NAME --keys '{file}'"
    for content, said in (
        (f"# a comment\n\n{line}bob\n", f"{file}:4: expected a name, a TAB and a hash. "),
        (f"{line}bob\t{'0' * 63}\n", f"{file}:2: expected a name, a TAB and a hash. "),
        (f"{line} \t \n{line}", f"{file}:3: alice has two keys. Remove one of the lines."),
        ("\n# none\n", f"{file} holds no key. Add one with `{add}`."),
    ):
        file.write_text(content)
        with pytest.raises(UserError) as error:
            Keys(file)
        assert str(error.value).startswith(said)
        assert (add in str(error.value)) == ("two keys" not in said)
    file.write_text(f"{line}# bob\tx\ncarol\t{'1' * 64}\n")
    assert bool(Keys(file)) and not Keys() and Keys().owner("x") is None


def test_names_of_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    for name in ("a" * 64, "a.b_c@d-e", "é", "a"):
        key = add_key(file, name)
        assert Keys(file).owner(key) == name
    for name in ("a" * 65, "", "a b", "a\t", "a/b", "#a"):
        with pytest.raises(UserError, match="Use at most 64 characters"):
            add_key(file, name)
    with pytest.raises(UserError, match="keys: a has a key already"):
        add_key(file, "a")
    assert add_key(file, "aa")  # a name may begin as another one
    with pytest.raises(UserError, match=r"none/keys can't be written: No such file or directory\."):
        add_key(tmp_path / "none" / "keys", "a")


def test_each_change_of_a_file_of_keys_is_noticed(tmp_path: Path) -> None:
    """Another file of the same size and time, another size, or another time."""
    file, other = tmp_path / "keys", tmp_path / "other"
    added = {name: add_key(tmp_path / name, name) for name in ("ann", "bob", "carol")}
    times = (10**9, 10**9)

    def write(path: Path, name: str) -> None:
        path.write_bytes((tmp_path / name).read_bytes())
        os.utime(path, times)

    write(file, "ann")
    keys = Keys(file)
    write(other, "bob")
    other.rename(file)
    assert (keys.owner(added["ann"]), keys.owner(added["bob"])) == (None, "bob")
    write(file, "carol")
    assert (keys.owner(added["bob"]), keys.owner(added["carol"])) == (None, "carol")
    write(file, "ann")
    assert keys.owner(added["ann"]) == "ann"
    times = (10**9, 10**9 + 1)
    write(file, "bob")
    assert (keys.owner(added["ann"]), keys.owner(added["bob"])) == (None, "bob")


def test_keys_may_come_from_a_pipe(tmp_path: Path) -> None:
    """It can be read only once."""
    key = add_key(tmp_path / "keys", "alice")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as writer:
        writer.submit(pipe.write_bytes, (tmp_path / "keys").read_bytes())
        keys = Keys(pipe)
    os.utime(pipe, (1, 1))
    assert keys.owner(key) == "alice"


def test_changed_key_file_is_read_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, key: str
) -> None:
    file = tmp_path / "keys"
    keys, alices = Keys(file), file.read_text()
    added = add_key(file, "bob")
    assert [keys.owner(each) for each in (key, added)] == ["alice", "bob"]
    file.write_text(file.read_text().removeprefix(alices))
    assert [keys.owner(each) for each in (key, added, key)] == [None, "bob", None]
    assert capsys.readouterr().err.count("Keys that are valid now: 1.") == 1
    file.write_text("bob\n")
    assert keys.owner(added) == "bob" and keys.owner(key) is None
    assert capsys.readouterr().err.count("The keys from before the change stay valid.") == 1
    file.unlink()
    assert keys.owner(added) == "bob"
    file.write_text("# nobody\n")
    assert keys.owner(added) is None and keys


def test_too_many_requests(tokenizer: Tokenizer, engine: Echo, tmp_path: Path, key: str) -> None:
    other = add_key(tmp_path / "keys", "bob")
    with client(
        guard(tokenizer, engine, Keys(tmp_path / "keys"), per_key=2), "192.0.2.1"
    ) as asking:
        asked = [
            asking.get("/languages", headers={"X-API-Key": each}) for each in (key, key, key, other)
        ]
        assert [answer.status_code for answer in asked] == [200, 200, 429, 200]
        assert (
            1 <= int(asked[2].headers["retry-after"]) <= 30
            and "Too many" in asked[2].json()["error"]
        )


def test_keys_are_compared_in_constant_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [add_key(tmp_path / "keys", name) for name in ("one", "two")]
    known, compared = Keys(tmp_path / "keys"), []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return one == other

    monkeypatch.setattr("hmac.compare_digest", compare)
    for key, owner in zip([*keys, "none"], ["one", "two", None], strict=True):
        compared.clear()
        # An early end would tell which key is near.
        assert known.owner(key) == owner and len(compared) == 2


def test_forwarded_prefix_does_not_bypass_keys(
    tokenizer: Tokenizer, engine: Echo, tmp_path: Path
) -> None:
    add_key(tmp_path / "keys", "alice")
    access = guard(tokenizer, engine, Keys(tmp_path / "keys"), proxied=True)
    app = network.server(access, Limits(), ["192.0.2.9"]).config.app
    with client(app, "192.0.2.9") as asking:
        for prefix, path in (
            ("/download_file", "/download_file/translate"),
            ("/", "//translate"),
            ("", "/translate"),
        ):
            answer = asking.post(path, json=WORDED, headers={"X-Forwarded-Prefix": prefix})
            assert answer.status_code in (401, 404, 405), (prefix, path)

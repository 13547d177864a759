"""`transduce serve` over real connections: the API, and what a network can do to it."""

import contextlib
import json
import re
import resource
import signal
import socket
import sys
import time
import urllib.error
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import transduce
from corpora import reverse_texts
from forked import COMMAND
from servers import Server, is_closed, receive, request, serving
from transduce.wings.serving.keys import add_key
from waiting import PATIENCE, wait_for

libretranslatepy = pytest.importorskip(
    "libretranslatepy", reason="pip install libretranslatepy (it is in `dev`)"
)

NONCE = "qzxnonceqzx"  # in what is sent: what a server writes on its standard error doesn't hold it
FORM = "application/x-www-form-urlencoded"
DEADLINES = [f"--limit=limits.{name}_seconds=2" for name in ("body", "answer")]
SENTENCES = reverse_texts(40, seed=5)[0]


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    with serving(model, model.parent / "server.log") as server:
        yield server
    log = server.log.read_text("utf-8")
    assert re.fullmatch(r"ka → zu: .*\nListening on .*\n", log), log  # whatever anybody sends
    assert server.process.poll() == 0


@pytest.fixture(scope="module")
def translator(model: Path) -> transduce.Translator:
    return transduce.load(model, engine="torch")


def ask(server: Server, q: object, **fields: object) -> Any:
    answer = server.post("/translate", {"q": q, "source": "ka", "target": "zu", **fields})
    assert answer.status == 200, answer
    return answer.json


# -- the API


def test_libretranslates_client_works_as_it_is(
    server: Server, translator: transduce.Translator
) -> None:
    client = libretranslatepy.LibreTranslateAPI(server.address)
    assert client.translate("ka lo mi", "ka", "zu") == translator.translate(["ka lo mi"])[0].text
    assert client.detect("Ein Hund rennt über die Straße.")[0]["language"] == "de"
    assert [(each["code"], each["targets"]) for each in client.languages()] == [
        ("ka", ["zu"]),
        ("zu", []),
    ]
    with pytest.raises(urllib.error.HTTPError, match="400"):
        client.translate("ka lo mi", "ka", "xx")


def test_json_form_and_query_requests_get_the_same_answer(
    server: Server, translator: transduce.Translator
) -> None:
    fields = {"q": "ka lo é +&", "source": "ka", "target": "zu"}
    form = urlencode(fields).encode()
    raw = "q=ka lo é %2B%26&source=ka&target=zu".encode()  # as `curl -d` sends it
    parts = "".join(
        f'--XX\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n'
        for name in fields
    )
    multipart = f"{parts}--XX--\r\n".encode()
    answers = [
        server.post("/translate", fields),
        server.send(request("POST", "/translate", json.dumps(fields, ensure_ascii=False).encode())),
        server.send(request("POST", "/translate", form, FORM)),
        server.send(request("POST", "/translate", raw, FORM)),
        server.send(request("POST", "/translate", multipart, "multipart/form-data; boundary=XX")),
        server.send(request("POST", f"/translate?{form.decode()}")),
        server.send(
            request(
                "POST", "/translate?target=xx&source=ka", b"q=ka+lo+%C3%A9+%2B%26&target=zu", FORM
            )
        ),
    ]
    assert {answer.body for answer in answers} == {answers[0].body}
    assert answers[0].json == {"translatedText": translator.translate([fields["q"]])[0].text}


def test_sentences_are_translated_as_by_the_library(
    server: Server, translator: transduce.Translator
) -> None:
    found = ask(server, SENTENCES, scores=True, alternatives=2, alignment=True, beam_size=4)
    expected = translator.translate(SENTENCES, n_best=3, align=True)
    assert found["translatedText"] == [each.text for each in expected]
    # No empty ones.
    texts = [[other.text for other in each.alternatives if other.text] for each in expected]
    assert found["alternatives"] == texts
    assert found["scores"] == pytest.approx([each.score for each in expected], abs=1e-3)
    assert found["flags"] == [list(each.flags) for each in expected]
    # The model was trained with fewer than 100 held-out pairs.
    assert found["confidence"] == [None] * len(SENTENCES)
    assert found["alignment"][0] == [
        {
            "source": list(link.source),
            "target": list(link.target),
            "weight": pytest.approx(link.weight, abs=1e-3),
        }
        for link in expected[0].links
    ]
    alone = ask(server, SENTENCES[0], scores=True, alternatives=2, alignment=True, beam_size=4)
    assert alone == {field: values[0] for field, values in found.items()}


GAPS = st.text(alphabet=" \n\t\r\u2028\x85", max_size=4)


@settings(max_examples=15)
@given(
    gaps=st.lists(st.text(alphabet=" \n\t", max_size=3).map("\n".__add__), max_size=4),
    begin=GAPS,
    end=GAPS,
)
def test_paragraphs_keep_what_is_between_them(
    server: Server, gaps: list[str], begin: str, end: str
) -> None:
    said = SENTENCES[: len(gaps) + 1]
    expected = ask(server, said)["translatedText"]

    def text(sentences: list[str]) -> str:
        return (
            begin
            + sentences[0]
            + "".join(map("".join, zip(gaps, sentences[1:], strict=True)))
            + end
        )

    assert ask(server, text(said))["translatedText"] == text(expected)


def test_a_text_without_words_stays_as_it_is(server: Server) -> None:
    for text in ("", " ", "\n\n", " \t\u3000"):
        assert ask(server, text)["translatedText"] == text
    assert ask(server, [" "] * 256)["translatedText"] == [" "] * 256
    assert ask(server, [], scores=True)["translatedText"] == []


def test_the_language_is_detected(server: Server) -> None:
    one = ask(server, "ka lo", source="auto")
    assert one["detectedLanguage"]["language"] == "ka"  # the only one there is a model from
    many = ask(server, ["ka lo", "mi"], source="auto")
    assert [each["language"] for each in many["detectedLanguage"]] == ["ka", "ka"]
    assert many["translatedText"][0] == one["translatedText"]


def test_markup_is_kept(server: Server) -> None:
    translated = ask(server, "ka lo")["translatedText"]
    found = ask(
        server, '<p id="a">ka lo</p>\n<!-- ka --><script>ka</script>', format="html", alternatives=1
    )
    assert found["translatedText"] == f'<p id="a">{translated}</p>\n<!-- ka --><script>ka</script>'
    assert len(found["alternatives"]) == 1
    plain, page = (
        ask(server, "ka lo mi", format=each, alternatives=3, scores=True)
        for each in ("text", "html")
    )
    assert page == plain and len({plain["scores"], *plain["alternativeScores"]}) == 4


def test_concurrent_requests_get_their_own_answers(server: Server) -> None:
    expected = {text: ask(server, text)["translatedText"] for text in SENTENCES}
    forms: list[dict[str, Any]] = [{}, {"alternatives": 2}, {"alignment": True}, {"beam_size": 1}]
    with ThreadPoolExecutor(16) as clients:
        asked = [(text, form) for form in forms for text in SENTENCES]
        answers = list(
            clients.map(
                lambda each: ask(server, [each[0], NONCE], **each[1])["translatedText"], asked
            )
        )
    for (text, form), answer in zip(asked, answers, strict=True):
        assert answer[0] == expected[text] or form == {"beam_size": 1}
        assert answer[0] == ask(server, text, **form)["translatedText"]


def test_a_document_comes_back(server: Server) -> None:
    body = (
        b'--XX\r\nContent-Disposition: form-data; name="source"\r\n\r\nka\r\n'
        b'--XX\r\nContent-Disposition: form-data; name="target"\r\n\r\nzu\r\n--XX\r\nContent-Disposition: form-data; '
        b'name="file"; filename="..\\../\xc3\xa9 a.TXT"\r\n\r\nka lo\n\nmi nu\n\r\n--XX--\r\n'
    )
    answer = server.send(
        request("POST", "/translate_file", body, "multipart/form-data; boundary=XX")
    )
    path = re.fullmatch(
        r"http://localhost(/download_file/[\w-]{20,}\.txt)", answer.json["translatedFileUrl"]
    )[1]
    found = server.get(path)
    assert found.body.decode() == ask(server, "ka lo\n\nmi nu\n")["translatedText"]
    assert (
        found.headers["content-disposition"]
        == f"attachment; filename*=UTF-8''{quote('é a.zu.TXT')}"
    )
    assert found.headers["content-type"] == "application/octet-stream"
    assert server.get(path.replace("/download_file/", "/download_file/x")).status == 404


def test_pages_and_their_headers(server: Server) -> None:
    for path in ("/", "/page.js", "/docs"):
        headers = server.get(path, Origin="http://evil.example").headers
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert headers["x-content-type-options"] == "nosniff"
        assert not [name for name in headers if name.startswith("access-control")]
    described = server.get("/openapi.json").json
    docs = server.get("/docs").body.decode()
    assert not re.findall(r'(?:src|href)="[^"]*//', docs)  # nothing from elsewhere
    assert re.findall(r"<script[^>]*>", docs) == [
        '<script type="module" src="device.js" blocking="render">'
    ]
    for path, methods in described["paths"].items():
        assert all(f"{method.upper()} {path}<" in docs for method in methods)
    fields = described["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]
    assert all(f"<code>{name}</code>" in docs for name in fields["properties"])
    document = described["paths"]["/translate_file"]["post"]["requestBody"]["content"][
        "multipart/form-data"
    ]["schema"]
    assert {"file", "source", "target"} < document["properties"].keys()
    answers = [
        each["responses"].keys()
        for methods in described["paths"].values()
        for each in methods.values()
    ]
    assert all(each == {"200", "default"} for each in answers), (
        "each error is an answer of one form"
    )
    for path, methods in described["paths"].items():
        named = {
            each["name"] for method in methods.values() for each in method.get("parameters", [])
        }
        assert named == set(re.findall(r"\{(\w+)\}", path))


def test_metrics_count(server: Server) -> None:
    def read() -> dict[str, float]:
        answer = server.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = [line for line in answer.body.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    before = read()
    ask(server, [f"{NONCE} ka", "lo"])
    server.get(f"/{NONCE}")
    after = read()

    def more(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert more('transduce_requests_total{route="/translate",status="200"}') == 1
    assert more('transduce_requests_total{route="other",status="404"}') == 1
    assert more("transduce_sentences_total") == 2 and more("transduce_source_tokens_total") > 2
    assert after["transduce_queue_requests"] == after["transduce_queue_tokens"] == 0
    assert not [name for name in after if NONCE in name]


# -- what is not as it should be


def multipart(q: bytes, kind: str = "multipart/form-data; boundary=XX") -> bytes:
    parts = ((b"q", q), (b"source", b"ka"), (b"target", b"zu"))
    body = b"".join(
        b'--XX\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % part for part in parts
    )
    return request("POST", "/translate", body + b"--XX--\r\n", kind)


def chunked(*chunks: bytes, head: str = "") -> bytes:
    lines = (
        f"POST /translate HTTP/1.1\r\nHost: localhost\r\n{head}Transfer-Encoding: chunked\r\n\r\n"
    )
    return lines.encode() + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)


def document(name: bytes, content: bytes) -> bytes:
    body = b"".join(
        b'--XX\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % each
        for each in ((b"source", b"ka"), (b"target", b"zu"))
    )
    body += (
        b'--XX\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%s\r\n--XX--\r\n'
        % (
            name,
            content,
        )
    )
    return request("POST", "/translate_file", body, "multipart/form-data; boundary=XX")


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def said(q: str) -> bytes:
    """JSON with `q` as it is."""
    return request("POST", "/translate", f'{{"q": {q}, "source": "ka", "target": "zu"}}'.encode())


FINE = chunked(b'{"q": "ka", "source": "ka", "target": "zu"}', b"")
ENTITIES = b"".join(
    b"<!ENTITY a%d '%s'>" % (i, b"&a%d;" % (i - 1) * 10 if i else b"a" * 10) for i in range(9)
)
HOSTILE = {
    "half a surrogate pair": (said(r'"\ud800"'), 400),
    "half a surrogate pair in a list": (said(r'["ka", "\udfff"]'), 400),
    "half a surrogate pair in bytes": (request("POST", "/detect", b'{"q": "\xed\xa0\x80"}'), 400),
    "a whole surrogate pair": (said(r'"\ud83d\ude00"'), 200),
    "no UTF-8": (request("POST", "/detect", b'{"q": "\xff"}'), 400),
    "UTF-16": (request("POST", "/detect", '{"q": "ka"}'.encode("utf-16")), 400),
    "no UTF-8, percent-encoded": (request("POST", "/detect", b"q=%ff", FORM), 400),
    "no UTF-8 in the query": (request("POST", "/detect?q=%ff"), 400),
    "no UTF-8 in multipart": (multipart(b"\xff"), 400),
    "an encoding of its own": (
        multipart(b"ka", "multipart/form-data; boundary=XX; charset=punycode"),
        400,
    ),
    "UTF-8 by its name": (multipart(b"ka", "multipart/form-data; boundary=XX; charset=UTF-8"), 200),
    "no boundary": (multipart(b"ka", "multipart/form-data"), 400),
    "a boundary that is too long": (
        multipart(b"ka", f"multipart/form-data; boundary={'X' * 300}"),
        400,
    ),
    "another boundary": (multipart(b"ka", "multipart/form-data; boundary=YY"), 400),
    "NUL": (said(r'"ka\u0000lo"'), 200),
    "depth": (said("[" * 1000 + "]" * 1000), 400),
    "depth that is text": (said(json.dumps('["' * 1000)), 200),
    "a text without end": (request("POST", "/detect", b'"' + b'\\"' * 500_000), 400),
    "no JSON": (request("POST", "/detect", b"{"), 400),
    "no object": (request("POST", "/detect", b"[]"), 400),
    "nothing": (request("POST", "/translate"), 400),
    "NaN": (said("NaN"), 400),
    "a number with too many digits": (said("9" * 5000), 400),
    "a million of what is no text": (said(f"[{'1,' * 500_000}1]"), 400),
    "a field twice": (request("POST", "/detect", b'{"q": "lo", "q": "ka"}'), 200),
    "a form's field twice": (
        request("POST", "/translate", b"q=ka&source=ka&target=zu&target=zu", FORM),
        400,
    ),
    "a form with too many fields": (request("POST", "/detect", b"a=&" * 1001 + b"q=ka", FORM), 400),
    "another kind of body": (request("POST", "/detect", b"ka", "text/plain"), 400),
    "a longer body than is allowed": (
        request("POST", "/detect", b"q=" + b"a" * (1 << 20), FORM),
        413,
    ),
    "a compressed body": (
        request("POST", "/detect", b"\x1f\x8b", "text/json", **{"Content-Encoding": "gzip"}),
        415,
    ),
    "an encoding that is none": (
        request("POST", "/detect", b"q=ka", FORM, **{"Content-Encoding": "utf-8"}),
        200,
    ),
    "several encodings": (
        request("POST", "/detect", b"\x1f\x8b", "text/json", **{"Content-Encoding": "x-gzip, br"}),
        415,
    ),
    "two origins": (
        FINE.replace(b"\r\n", b"\r\nOrigin: http://localhost\r\norigin: http://localhost\r\n", 1),
        400,
    ),
    "two types": (FINE.replace(b"\r\n", b"\r\nContent-Type: text/plain\r\n", 1), 400),
    "the address of another host": (get("http://evil.example/health"), 400),
    "the address of no host": (get("http:///health"), 400),
    "an address with a user": (get("http://localhost@localhost/health"), 400),
    "a glossary that is no JSON": (
        request("POST", "/translate", b"q=ka&source=ka&target=zu&glossary=x", FORM),
        400,
    ),
    "a whole address": (get("http://localhost:5000/health"), 200),
    "a whole address of the page": (get("HTTP://localhost"), 200),
    "longer chunks than are allowed": (chunked(*[b"x" * 60_000] * 20), 413),
    "a document with longer chunks than are allowed": (
        chunked(
            b"--XX\r\nContent-Disposition: form-data; name=file; filename=a.txt\r\n\r\n",
            *[b"x" * 60_000] * 80,
            head="Content-Type: multipart/form-data; boundary=XX\r\n",
        ).replace(b"/translate ", b"/translate_file "),
        413,
    ),
    "chunks": (FINE, 200),
    "a length and chunks": (FINE.replace(b"\r\n", b"\r\nContent-Length: 2\r\n", 1), 400),
    "a huge length": (get("/languages", "Content-Length: 99999999999999999999"), 413),
    "many headers": (get("/health", *[f"X-{i}: a" for i in range(100)]), 431),
    "headers that arrive at once": (get("/health", f"X-A: {'a' * 20_000}"), 431),
    "a page of another site": (
        FINE.replace(b"\r\n", b"\r\nOrigin: http://evil.example\r\n", 1),
        403,
    ),
    "a page without a site": (FINE.replace(b"\r\n", b"\r\nOrigin: null\r\n", 1), 403),
    "a page of no site": (FINE.replace(b"\r\n", b"\r\nOrigin: http://[evil\r\n", 1), 403),
    "a page of this machine": (
        FINE.replace(b"\r\n", b"\r\nOrigin: http://127.0.0.1:3000\r\n", 1),
        200,
    ),
    "another host": (get("/health").replace(b"localhost", b"evil.example"), 421),
    "another host that looks alike": (
        get("/health").replace(b"localhost", b"localhost.evil.example"),
        421,
    ),
    "another name of this machine": (get("/health").replace(b"localhost", b"[::1]:5000"), 200),
    "a path upwards": (get("/../../etc/passwd"), 404),
    "a path upwards, percent-encoded": (get("/page.js%2f..%2f..%2fkeys.py"), 404),
    "a path with NUL": (get("/%00"), 404),
    "a path as markup": (get("/%3Cscript%3E"), 404),
    "OPTIONS": (request("OPTIONS", "/translate", Origin="http://evil.example"), 405),
    "TRACE": (request("TRACE", "/translate"), 405),
    "a websocket": (get("/health", "Connection: upgrade", "Upgrade: websocket"), 200),
    "an unknown suffix": (document(b"a.exe", b"MZ"), 400),
    "a compressed document": (document(b"a.txt.gz", b"\x1f\x8b"), 400),
    "no suffix": (document(b"", b"ka"), 400),
    "a document not in UTF-8": (document(b"a.txt", b"\xff"), 400),
    "a name not in UTF-8": (document(b"\xff.txt", b"ka"), 200),
    "entities in entities": (
        document(b"a.xlf", b"<!DOCTYPE x [%s]><xliff>&a8;</xliff>" % ENTITIES),
        400,
    ),
    "a file of the server": (
        document(b"a.xlf", b"<!DOCTYPE x [<!ENTITY a SYSTEM '/etc/passwd'>]><x>&a;</x>"),
        400,
    ),
    "deep XML": (document(b"a.xlf", b"<a>" * 100_000), 400),
    "broken HTML": (document(b"a.html", b"<p>ka<b>lo</p><!-- <a href='&#xD800;<![CDATA["), 200),
    "no document": (request("POST", "/translate_file", b"{}", "application/json"), 400),
    "a blank sentence's attention": (
        request("POST", "/attention", b'{"q": " ", "source": "ka", "target": "zu"}'),
        400,
    ),
}


MALFORMED = {
    "a chunk that is none": chunked(b"{}") + b"zz\r\n",
    "two lengths": get("/health", "Content-Length: 1", "Content-Length: 2"),
    "a length below zero": get("/health", "Content-Length: -1"),
    "a space before the colon": get("/health", "Content-Length : 1"),
    "NUL in a header": get("/health", "X-A: \0"),
    "endless headers": get("/health", *[f"X-{i}: {'a' * 1000}" for i in range(50)]).removesuffix(
        b"\r\n\r\n"
    ),
    "two hosts": get("/health", "Host: evil.example"),
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_requests_of_a_connection_may_arrive_in_any_pieces(server: Server, size: int) -> None:
    body = b'\n{"q":\n"ka",\n\n"source": "ka", "target": "zu"}\r\n\r\n\n'
    asked = [
        get("/health"),
        request("POST", "/translate", body, "application/json"),
        get("/health"),
        FINE,
    ]
    with server.connect() as connection:
        for content in asked:
            for i in range(0, len(content), size):
                connection.sendall(content[i : i + size])
                time.sleep(0.001)  # so that most pieces arrive alone
            assert receive(connection).status == 200


@pytest.mark.parametrize("content, status", HOSTILE.values(), ids=HOSTILE)
def test_hostile_requests_are_answered(server: Server, content: bytes, status: int) -> None:
    answer = server.send(content)
    assert answer.status == status, answer
    assert status == 200 or answer.error


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_the_connection_of_a_malformed_request_ends(server: Server, content: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(content)
        assert receive(connection).status == 400 and is_closed(connection)


def test_a_body_that_becomes_malformed_after_its_answer_is_not_logged(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(FINE.replace(b"localhost", b"evil.example", 1)[:-5])
        assert receive(connection).status == 421
        connection.sendall(b"zz\r\n")
        assert is_closed(connection)  # and the log is empty, as the fixture checks


VALUES = (
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text()
    | st.lists(st.text() | st.none())
)
FIELDS = (
    "q",
    "source",
    "target",
    "format",
    "alternatives",
    "scores",
    "alignment",
    "beam_size",
    "glossary",
    "api_key",
)


@given(fields=st.dictionaries(st.sampled_from(FIELDS), VALUES | st.dictionaries(st.text(), VALUES)))
def test_fields_of_any_kind_are_answered(server: Server, fields: dict[str, Any]) -> None:
    answer = server.post("/translate", {"q": NONCE, "source": "ka", "target": "zu"} | fields)
    assert answer.status in (200, 400), (fields, answer)
    assert answer.status == 200 or answer.error


@given(text=st.text(max_size=80) | st.text(alphabet="<>&;/!-[]\"'=#x0aka \n", max_size=80))
def test_any_text_is_translated(server: Server, text: str) -> None:
    found = ask(server, text, alternatives=1, alignment=True, scores=True)
    assert found["translatedText"].count("\n") == text.count("\n")
    ask(server, text, format="html")


# -- slow clients, impatient ones, the end


def test_slow_bodies_do_not_delay_others(model: Path) -> None:
    def drips(connection: socket.socket) -> None:
        connection.sendall(request("POST", "/detect", **{"Content-Length": "999999"}))
        with contextlib.suppress(ConnectionError):
            while not is_closed(connection, 0.02):
                connection.sendall(b"a")

    def never_comes(connection: socket.socket) -> None:
        connection.sendall(chunked(b"{")[:-3])

    def idles(connection: socket.socket) -> None:
        connection.sendall(get("/health"))
        assert receive(connection).status == 200

    behaviours = (drips, never_comes, idles)
    with (
        serving(model, model.parent / "slow.log", *DEADLINES) as server,
        ThreadPoolExecutor(len(behaviours)) as clients,
    ):

        def watch(behave: Callable[[socket.socket], None]) -> bool:
            with server.connect() as connection:
                behave(connection)
                return is_closed(connection)

        def answers_while(*others: Future[bool]) -> bool:
            assert server.get("/health").status == 200
            return all(other.done() for other in others)

        closed = [clients.submit(watch, behave) for behave in behaviours]
        wait_for(lambda: answers_while(*closed))
        assert all(other.result() for other in closed)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has TCP_USER_TIMEOUT")
def test_a_connection_ends_if_the_client_does_not_read(model: Path) -> None:
    with (
        serving(model, model.parent / "unread.log", *DEADLINES) as server,
        server.connect() as connection,
    ):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(1000 * get("/page.js"))

        def has_ended() -> bool:
            try:
                connection.send(b"a")
            except ConnectionError:
                return True
            return False

        wait_for(has_ended)


def test_slow_body_is_answered_with_408(model: Path) -> None:
    with (
        serving(model, model.parent / "late.log", *DEADLINES) as server,
        server.connect() as connection,
    ):
        connection.sendall(FINE[:-10])
        answer = receive(connection)
        assert answer.status == 408 and "did not arrive within" in answer.error
        assert is_closed(connection)


def test_disconnected_client_frees_its_place_in_the_queue(server: Server) -> None:
    # Seconds of work: no line twice.
    texts = ["\n".join(f"ka lo {i} {j}" for j in range(200)) for i in range(40)]
    long = request(
        "POST", "/translate", json.dumps({"q": texts, "source": "ka", "target": "zu"}).encode()
    )
    before = metric(server, "sentences_total")
    with server.connect() as connection:
        connection.sendall(long)
        wait_for(lambda: metric(server, "queue_requests") >= 1)
        assert ask(server, "ka lo")  # does not wait for it
        with server.connect() as other:
            # Leaves in the middle of its body.
            other.sendall(request("POST", "/translate", b'{"q": "' + b"a" * 99)[:150])
    wait_for(lambda: metric(server, "queue_requests") == 0)
    with server.connect() as connection:
        connection.sendall(long)
        wait_for(lambda: metric(server, "queue_requests") >= 1)
        connection.shutdown(socket.SHUT_WR)  # closes only its sending side
        wait_for(lambda: metric(server, "queue_requests") == 0)
    # Not even one of the two was translated to its end.
    assert metric(server, "sentences_total") - before < 8000


def metric(server: Server, name: str) -> float:
    """The value of a metric without labels."""
    found = re.search(rf"^transduce_{name} (.*)$", server.get("/metrics").body.decode(), re.M)
    assert found
    return float(found[1])


def test_a_refusal_does_not_wait_for_the_body(model: Path) -> None:
    keys = model.parent / "keys"
    key = add_key(keys, "alice")
    with serving(model, model.parent / "keys.log", f"--keys={keys}") as server:
        client = libretranslatepy.LibreTranslateAPI(server.address, key)
        assert (
            client.translate("ka lo", "ka", "zu")
            and len(client.languages()) == 2
            and client.detect("ka")
        )
        stranger = libretranslatepy.LibreTranslateAPI(server.address)
        assert len(stranger.languages()) == 2  # without a key, as Weblate asks
        with pytest.raises(urllib.error.HTTPError, match="401"):
            stranger.detect("ka")
        for path in ("/translate", "/translate_file", "/nowhere"):
            for given, status in (
                ({}, 401),
                ({"X-API-Key": "wrong"}, 403),
                ({"X-API-Key": key}, 413),
            ):
                asked = request("POST", path, **{"Content-Length": "99999999"}, **given)
                assert server.send(asked).status == status  # none of the body was sent
        with server.connect() as waiting:  # a short one could hold a key
            waiting.sendall(request("POST", "/translate", **{"Content-Length": "9"}))
            assert not is_closed(waiting, 0.2)
            waiting.sendall(b"api_key=x")
            assert receive(waiting).status == 401  # the kind of the body wasn't said
    assert key not in keys.read_text() + server.log.read_text()


def test_oversized_body_is_answered_with_413(server: Server) -> None:
    """Clients such as Python's urllib send everything, ask to close the connection, and read then."""
    asked = request("POST", "/translate", b"q" * (6 << 20), "application/json", Connection="close")
    for _ in range(5):
        with server.connect() as connection:
            connection.sendall(asked)
            assert receive(connection).status == 413
            assert is_closed(connection)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_a_closed_terminal_ends_the_server_as_sigterm_does(model: Path) -> None:
    heeding = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "  # nohup lets children ignore it
    log = model.parent / "hangup.log"
    with serving(model, log, script=heeding + COMMAND) as server, server.connect() as slow:
        slow.sendall(FINE[:-10])
        server.get("/health")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: not is_accepting(server))
        slow.sendall(FINE[-10:])
        assert receive(slow).status == 200 and server.process.wait(PATIENCE) == 0


def is_accepting(server: Server) -> bool:
    try:
        return server.get("/health").status == 200
    except ConnectionError:
        return False


def test_sigterm_answers_accepted_requests_and_accepts_no_more(model: Path) -> None:
    unhurried = [
        f"--limit=limits.{name}_seconds={PATIENCE:.0f}" for name in ("body", "answer", "drain")
    ]
    with (
        serving(model, model.parent / "ended.log", *unhurried) as server,
        contextlib.ExitStack() as open_ones,
    ):
        long = ["\n".join(f"ka lo {i} {j}" for j in range(100)) for i in range(10)]
        texts = [long, *([text] * 5 for text in SENTENCES[:8])]
        connections = [open_ones.enter_context(server.connect()) for _ in texts]
        for connection, text in zip(connections, texts, strict=True):
            body = json.dumps({"q": text, "source": "ka", "target": "zu"}).encode()
            connection.sendall(request("POST", "/translate", body))
        begun = open_ones.enter_context(server.connect())
        begun.sendall(FINE[:-10])
        wait_for(lambda: metric(server, "queue_requests") >= 1)
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionError):
            while True:
                server.get("/health")
        begun.sendall(FINE[-10:])
        assert receive(begun).status == 200
        answers = [receive(connection).json["translatedText"] for connection in connections]
        assert list(map(len, answers)) == list(map(len, texts))
        assert server.process.wait(PATIENCE) == 0
    assert "Traceback" not in server.log.read_text()


SLOW_TO_CLOSE = "from transduce.wings.serving import network; network.READ_SECONDS = 60; "


def test_requests_that_arrive_with_sigterm_are_answered(model, tmp_path):
    fields = {"q": "ka lo", "source": "ka", "target": "zu"}
    asked = request("POST", "/translate", json.dumps(fields).encode(), "application/json")
    with (
        serving(model, tmp_path / "log", script=SLOW_TO_CLOSE + COMMAND) as server,
        contextlib.ExitStack() as stack,
    ):
        kept, new = ([stack.enter_context(server.connect()) for _ in range(20)] for _ in range(2))
        for connection in kept:
            connection.sendall(asked)
            assert receive(connection).status == 200
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionError):
            while True:
                server.get("/health")
        for connection in kept + new:
            connection.sendall(asked)
        for connection in kept + new:
            answer = receive(connection)
            assert answer.status == 200 and answer.headers["connection"] == "close"
            assert is_closed(connection)
        server.process.kill()  # instead of the 60 seconds


def test_requests_that_outlast_the_shutdown_are_given_up(model: Path) -> None:
    with (
        serving(model, model.parent / "given-up.log", "--limit=limits.drain_seconds=1") as server,
        server.connect() as slow,
    ):
        slow.sendall(FINE[:-10])
        server.get("/health")
        server.process.send_signal(signal.SIGTERM)
        answer = receive(slow)
        assert (answer.status, answer.error) == (
            503,
            "The server is shutting down; send the request again later.",
        )
        assert int(answer.headers["retry-after"]) >= 1 and server.process.wait(PATIENCE) == 0
    assert "Traceback" not in server.log.read_text()


BUSY = """
import time
from transduce.decoding.torch_engine import TorchEngine
TorchEngine.search = lambda *_: time.sleep(9e5)
"""


def test_shutdown_does_not_wait_for_the_engine(model: Path) -> None:
    with (
        serving(
            model,
            model.parent / "busy.log",
            "--limit=limits.drain_seconds=1",
            script=BUSY + COMMAND,
        ) as server,
        server.connect() as connection,
    ):
        connection.sendall(FINE)
        wait_for(lambda: metric(server, "queue_requests") == 1)
        server.process.send_signal(signal.SIGTERM)
        assert receive(connection).status == 503 and server.process.wait(PATIENCE) == 0


def test_too_many_connections(model: Path) -> None:
    with (
        serving(model, model.parent / "many.log", "--limit=limits.connections=4") as server,
        contextlib.ExitStack() as held,
    ):
        connections = [held.enter_context(server.connect()) for _ in range(4)]
        for connection in connections[:2]:
            connection.sendall(get("/health"))
            assert receive(connection).status == 200
        assert server.get("/health").status == 503
        for connection in connections[2:]:
            connection.close()
        wait_for(lambda: server.get("/health").status == 200)


def test_more_connections_than_the_system_allows(model: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    log = model.parent / "files.log"
    script = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (130, 130)); from transduce import cli; "
    with (
        serving(model, log, script=f"{script}cli.main()") as server,
        contextlib.ExitStack() as held,
    ):
        assert "Only 10 connections are possible" in " ".join(log.read_text().split())
        for _ in range(50):
            held.enter_context(server.connect())
        with contextlib.suppress(ConnectionError):
            assert server.get("/health").status == 503
        held.close()

        def answers() -> bool:
            with contextlib.suppress(ConnectionError):
                return server.get("/health").status == 200
            return False

        wait_for(answers)
    assert "Traceback" not in log.read_text() and "Too many open files" not in log.read_text()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


@pytest.mark.parametrize(("proxy", "status"), [("10.0.0.1", 421), ("127.0.0.1", 200)])
def test_forwarded_headers_count_only_if_they_are_from_a_proxy(
    model: Path, proxy: str, status: int
) -> None:
    log = model.parent / f"proxy-{proxy}.log"
    forged = ["Host: evil.example", "X-Forwarded-For: 192.0.2.1", "Origin: http://evil.example"]
    with serving(model, log, "--proxy", proxy) as server:
        for headers, expected in ((forged, status), (forged[:1], 421), (["Host: localhost"], 200)):
            asked = "\r\n".join(["GET /languages HTTP/1.1", *headers, "", ""])
            assert server.send(asked.encode()).status == expected
    assert ("Give --keys" in " ".join(log.read_text().split())) == (status == 200)

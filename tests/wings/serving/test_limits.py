"""Tests of transduce/wings/serving/limits.py."""

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from corpora import WORDS
from servers import Echo, store_of
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import TERM_MARKS
from waiting import PATIENCE

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from starlette.testclient import TestClient
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from requests_of_tests import NOBODY, WORDED, client, guard, translator_of
from transduce.system.errors import UserError
from transduce.wings.memories.database import Database
from transduce.wings.serving.api import application
from transduce.wings.serving.corrections import Corrections
from transduce.wings.serving.examples import EXAMPLES
from transduce.wings.serving.limits import Limits, limits_from, memory_from, rows


def test_addresses_are_told_apart(tokenizer: Tokenizer, engine: Echo) -> None:
    app = guard(tokenizer, engine, local=False, per_address=1)
    asked = [
        "192.0.2.1",
        "192.0.2.1",
        "192.0.2.2",
        "2001:db8::1",
        "2001:db8::2",
        "2001:db9::1",
        *["127.0.0.1"] * 3,
    ]
    # As some proxies write them.
    asked += [
        "::ffff:192.0.2.1",
        "::ffff:192.0.2.3",
        "::ffff:192.0.2.4",
    ]
    found = []
    for address in asked:
        with client(app, address) as asking:
            found.append(asking.get("/languages").status_code)
    assert found == [200, 429, 200, 200, 429, 200, 200, 200, 200, 429, 200, 200]


def test_forwarded_addresses_are_believed_of_a_proxy_alone(
    tokenizer: Tokenizer, engine: Echo
) -> None:
    app = guard(tokenizer, engine, local=False, per_address=1)
    proxied = ProxyHeadersMiddleware(app, trusted_hosts=["192.0.2.9"])
    found = []
    for address, said in (
        *(
            ("192.0.2.9", f"127.0.0.1, 198.51.100.{i}") for i in (1, 1, 2)
        ),  # what comes first, anybody may write
        ("192.0.2.9", "nonsense"),
        ("192.0.2.9", "nonsense"),
        *(("192.0.2.3", f"198.51.100.{i}") for i in (3, 4)),
    ):
        with client(proxied, address) as asking:
            found.append(asking.get("/languages", headers={"X-Forwarded-For": said}).status_code)
    assert found == [200, 429, 200, 200, 429, 200, 429]


# -- limits


def test_every_exceeded_limit_is_explained(tokenizer: Tokenizer, engine: Echo) -> None:
    small = {
        "texts": 2,
        "characters": 9,
        "alternatives": 3,
        "beam_size": 2,
        "terms": 1,
        "depth": 2,
        "body": 5000,
    }
    small["term_characters"] = 5
    with client(guard(tokenizer, engine, **small, document=800, document_characters=8)) as asking:
        for fields, sentence in (
            ({"q": ["ka"] * 3}, "Too many texts: 3; at most 2"),
            ({"q": "k" * 10}, "The text has 10 characters; at most 9"),
            ({"q": ["ka", "k" * 10]}, "The text has 10 characters; at most 9"),
            ({"alternatives": 4}, "Too many alternatives: 4; at most 3"),
            ({"beam_size": 3}, "Too many hypotheses (beam_size): 3; at most 2"),
            ({"glossary": {"a": "b", "c": "d"}}, "Too many terms: 2; at most 1"),
            (
                {"glossary": {"a": "k" * 6}},
                "The text of a glossary entry has 6 characters; at most 5",
            ),
            (
                {"glossary": {"k" * 6: "a"}},
                "The text of a glossary entry has 6 characters; at most 5",
            ),
            ({"q": [["ka"]]}, "2 levels"),
        ):
            answer = asking.post("/translate", json=WORDED | fields)
            assert answer.status_code == 400 and sentence in answer.json()["error"], answer.text
        assert (
            asking.post(
                "/translate", json=WORDED | {"q": ["k" * 9] * 2, "alternatives": 3}
            ).status_code
            == 200
        )
        assert asking.post("/detect", json={"q": "k" * 10}).status_code == 400
        assert asking.post("/detect", json={"q": "k" * 5000}).status_code == 413
        for content, status in (
            (b"ka\nlo\n", 200),
            (b"k" * 10, 400),
            (b"ka ka\nlo lo\n", 400),
            (b"k" * 999, 413),
        ):
            answer = asking.post("/translate_file", data=WORDED, files={"file": ("a.txt", content)})
            assert answer.status_code == status, answer.text


NOTHING_IN_XLIFF = (
    b'<xliff version="1.2"><file source-language="ka" target-language="zu"></file></xliff>'
)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt", b""), ("a.txt", b"\n"), ("a.html", b"<br>"), ("a.xlf", NOTHING_IN_XLIFF)],
)
def test_a_document_without_text_comes_back(
    tokenizer: Tokenizer, engine: Echo, name: str, content: bytes
) -> None:
    with client(guard(tokenizer, engine)) as asking:
        answer = asking.post("/translate_file", data=WORDED, files={"file": (name, content)})
        assert answer.status_code == 200, answer.text
        assert asking.get(answer.json()["translatedFileUrl"]).content == content
        same = {"source": "ka", "target": "ka"}
        assert (
            asking.post("/translate_file", data=same, files={"file": (name, content)}).status_code
            == 200
        )
        answer = asking.post("/translate_file", data=same, files={"file": ("a.doc", content)})
        assert (
            answer.status_code == 400 and "document of a word processor" in answer.json()["error"]
        )


def test_head_requests_answer_like_get(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine)) as asking:
        for path in ("/", "/health", "/languages", "/docs", "/nowhere"):
            head, whole = asking.head(path), asking.get(path)
            assert (head.status_code, head.headers, head.content) == (
                whole.status_code,
                whole.headers,
                b"",
            )
        assert asking.head("/translate").status_code == 405


def test_local_server_answers_local_host_names_only(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine)) as asking:
        for host in ("localhost", "LOCALHOST:5000", "127.0.0.1:5000", "[::1]:5000", "127.1.2.3"):
            assert asking.get("/health", headers={"Host": host}).status_code == 200, host
        for host in (
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "192.0.2.1",
        ):
            assert asking.get("/health", headers={"Host": host}).status_code == 421, host
        for host in ("[::1", "[::1]evil.example", "[::1]:a", "localhost:1:2", "a b", "u@localhost"):
            assert asking.get("/health", headers={"Host": host}).status_code == 400, host
    with client(guard(tokenizer, engine, local=False)) as asking:
        assert asking.get("/health", headers={"Host": "evil.example"}).status_code == 200


def test_local_server_refuses_pages_of_other_sites(tokenizer: Tokenizer, engine: Echo) -> None:
    foreign = {"Sec-Fetch-Site": "Cross-Site"}
    with client(guard(tokenizer, engine)) as asking:
        for origin in ("http://[::1]evil.example", "http://localhost, http://evil.example"):
            answer = asking.post("/translate", json=WORDED, headers={"Origin": origin})
            assert answer.status_code == 403, origin
        assert asking.post("/translate", json=WORDED, headers=foreign).status_code == 403
        assert asking.get("/", headers=foreign).status_code == 200  # as a link to it does
        for site in ("same-origin", "same-site", "none"):
            assert (
                asking.post("/translate", json=WORDED, headers={"Sec-Fetch-Site": site}).status_code
                == 200
            )
    with client(guard(tokenizer, engine, local=False)) as asking:
        assert asking.post("/translate", json=WORDED, headers=foreign).status_code == 200


def test_local_server_trusts_a_proxy_for_forwarded_requests_only(
    tokenizer: Tokenizer, engine: Echo
) -> None:
    forwarded = {"X-Forwarded-For": "192.0.2.1"}
    with client(guard(tokenizer, engine, proxied=True)) as asking:

        def status(**headers: str) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return asking.post("/translate", json=WORDED, headers=named).status_code

        assert status(Host="mt.example", **forwarded) == status(Host="localhost") == 200
        assert status(Host="mt.example", Origin="https://mt.example", **forwarded) == 200
        assert status(Host="mt.example") == status(Host="evil.example") == 421
        # A proxy may change the host.
        assert status(Host="127.0.0.1", Origin="https://mt.example", **forwarded) == 200
        assert status(Host="mt.example", Sec_Fetch_Site="cross-site", **forwarded) == 403
        assert status(Host="localhost", Origin="https://evil.example") == 403
        assert status(Host="localhost", Sec_Fetch_Site="cross-site") == 403


def test_a_byte_order_mark_is_no_part_of_a_text(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine)) as asking:
        for form in ("text", "html"):
            answer = asking.post("/translate", json=WORDED | {"q": "\ufeffka lo", "format": form})
            assert answer.json()["translatedText"].removeprefix("\ufeff") == "ka lo"
    assert {text for batch in engine.searched for text in batch} == {"ka lo"}


def test_names_of_documents_as_in_emails(tokenizer: Tokenizer, engine: Echo) -> None:
    """.NET writes them so."""
    names = {
        "=?utf-8?B?w7xiZXIudHh0?=": "%C3%BCber.zu.txt",
        "=?utf-8?Q?a=00b=2Etxt?=": "ab.zu.txt",
        "=?utf-8?B?a?=.txt": "%3D%3Futf-8%3FB%3Fa%3F%3D.zu.txt",
        "=?x?B?zz?=.txt": "%3D%3Fx%3FB%3Fzz%3F%3D.zu.txt",
    }
    with client(guard(tokenizer, engine)) as asking:
        for name, expected in names.items():
            answer = asking.post("/translate_file", data=WORDED, files={"file": (name, b"ka lo")})
            found = asking.get(answer.json()["translatedFileUrl"]).headers["content-disposition"]
            assert found.endswith(expected), (name, found)
        half = {"file": ("=?unicode_escape?Q?=5Cud800=2Etxt?=", b"ka lo")}  # of a surrogate pair
        assert "has no suffix" in asking.post("/translate_file", data=WORDED, files=half).text
        for fields, reason in (
            ({"source": "ka"}, "target: field required"),
            ({"target": "zu"}, ""),
        ):
            answer = asking.post(
                "/translate_file", data=fields, files={"file": ("a.txt", b"ka lo")}
            )
            assert answer.status_code == (400 if reason else 200) and reason in answer.text
        assert (
            "field file with a filename"
            in asking.post("/translate_file", data=WORDED | {"file": "ka"}).text
        )


def test_glossaries_apply_to_documents(tokenizer: Tokenizer, engine: Echo) -> None:
    def sent(glossary: object) -> Any:
        fields = WORDED | {"glossary": json.dumps(glossary)}
        return asking.post("/translate_file", data=fields, files={"file": ("a.txt", b"ka lo")})

    with client(guard(tokenizer, engine)) as asking:
        for glossary, searches in (({}, 1), ({"ka": "zu"}, 3)):
            assert sent(glossary).status_code == 200
            assert len(engine.searched) == searches  # once more for the missing term
        for wrong in ({"ka": "zu" * 200}, {f"ka{i}": "zu" for i in range(5_001)}, ["ka"]):
            assert sent(wrong).status_code == 400


@pytest.mark.parametrize("form", ["text", "html"])
def test_an_answer_tells_what_became_of_terms(engine: Echo, form: str) -> None:
    """The echo of a model that reads terms holds them; where they are exact, the model reads the text alone."""
    pytest.importorskip("simplemma", reason="pip install 'transduce[terms]'")
    tokenizer = Tokenizer.train(list(WORDS), list(WORDS), vocab_size=300, marks=TERM_MARKS)
    fields = {"q": ["lo ka lo.", "lo"], "source": "ka", "target": "zu", "format": form}
    with client(guard(tokenizer, engine)) as asking:

        def sent(**more: object) -> Any:
            return asking.post("/translate", json=fields | {"scores": True, **more}).json()

        term = {"source": "ka", "target": "zu", "state": "kept"}
        found = sent(glossary={"ka": "zu", "re": "wi"})
        assert found["translatedText"] == ["lo ka zu lo.", "lo"]
        assert (found["terms"], found["flags"]) == ([[term], []], [[], []])
        exact = sent(glossary={"ka": "zu"}, glossary_exact=True)
        assert exact["translatedText"] == fields["q"]
        assert exact["terms"] == [[term | {"state": "missed"}], []]
        assert "term" in exact["flags"][0]
        assert "terms" not in sent()


def test_examples_of_the_description_are_true(
    tokenizer: Tokenizer, engine: Echo, tmp_path: Path
) -> None:
    served = store_of(translator_of(engine, tokenizer, "en", "de"))
    kept = Corrections(Database(tmp_path / "m.sqlite"), "anyone")
    with client(application(served, NOBODY, Limits(), local=True, corrections=kept)) as asking:
        described = asking.get("/openapi.json").json()["paths"]
        shown = asking.get("/docs").text
        for path, (asked, expected) in EXAMPLES.items():
            [(method, route)] = described[path].items()
            assert route["responses"]["200"]["content"]["application/json"]["example"] == expected
            assert f"<pre>curl SERVER{path}" in shown
            fields = {name: value for name, value in asked.items() if name != "file"}
            files = {"file": ("a.po", b'msgid "a"\nmsgstr ""')} if "file" in asked else None
            found = asking.request(method, path, data=fields or None, files=files).json()
            assert type(found) is type(expected)
            if not asked or path == "/detect":  # no model translates
                assert found == expected
            for mine, its in zip([found, expected], [expected, found], strict=True):
                first, second = (
                    each[0] if isinstance(each, list) else each for each in (mine, its)
                )
                assert first.keys() == second.keys(), path


def test_texts_of_documents_are_read_as_markup(tokenizer: Tokenizer, engine: Echo) -> None:
    document = b"<p>ka\n  lo &amp; mi</p>"
    with client(guard(tokenizer, engine)) as asking:
        answer = asking.post(
            "/translate_file", data=WORDED, files={"file": ("a.html", document)}
        ).json()
        translated = asking.get(answer["translatedFileUrl"]).content
    assert engine.searched == [["ka lo & mi"]]  # as one sentence, without an entity
    assert translated == b"<p>ka lo &amp; mi</p>"


def test_markup_does_not_change_the_language(tokenizer: Tokenizer, engine: Echo) -> None:
    other = Echo(gate=engine.gate)
    served = store_of(
        translator_of(engine, tokenizer, "en", "zu"), translator_of(other, tokenizer, "de", "zu")
    )
    text = "Guten Morgen, wie geht es dir?"
    marked = f"<style>{'.the-story-of-the-day { color: white }' * 99}</style><p title='The story of this day'>{text}"
    asked = {"source": "auto", "target": "zu"}
    with client(application(served, NOBODY, Limits(), local=True)) as asking:
        for q, form in ((text, "text"), (text, "html"), (marked, "html")):
            answer = asking.post("/translate", json=asked | {"q": q, "format": form})
            assert answer.json()["detectedLanguage"]["language"] == "de", answer.text
        assert (
            asking.post(
                "/translate_file", data=asked, files={"file": ("a.html", marked)}
            ).status_code
            == 200
        )
        assert other.searched and not engine.searched
        mixed = ["The weather is nice today, isn't it?", text, "1234", "MP3"]
        answer = asking.post("/translate", json=asked | {"q": mixed}).json()
        assert [each["language"] for each in answer["detectedLanguage"]][:3] == ["en", "de", "und"]
        assert answer["detectedLanguage"][3]["language"] in ("en", "de"), "as the other texts"
        assert (
            answer["detectedLanguage"][2]["confidence"] == 0 and answer["translatedText"] == mixed
        )
        assert engine.searched


def test_language_is_detected_from_translatable_text_only(
    tokenizer: Tokenizer, engine: Echo
) -> None:
    other = Echo(gate=engine.gate)
    served = store_of(
        translator_of(engine, tokenizer, "en", "de"), translator_of(other, tokenizer, "fr", "de")
    )
    catalogue = '"Language: de\\n"\n\nmsgid "Hello"\nmsgstr "Guten Morgen, wie geht es dir?"\n\nmsgid "{}"\nmsgstr ""\n'
    french = "Bonjour, comment allez-vous aujourd'hui ?"
    memory = f"""<tmx version="1.4"><header srclang="fr"/><body><tu>
    <tuv xml:lang="en"><seg>Is it late?</seg></tuv><tuv xml:lang="fr"><seg>{french}</seg></tuv></tu></body></tmx>"""
    files = {
        "a.html": "<style>.the-story-of-the-day { color: white }</style>" * 2_000 + f"<p>{french}",
        "a.po": f'msgid ""\nmsgstr ""\n{catalogue.format(french)}',
        "a.tmx": memory,
    }
    with client(application(served, NOBODY, Limits(), local=True)) as asking:
        for name, content in files.items():
            asked = {"source": "auto", "target": "de"}
            answer = asking.post("/translate_file", data=asked, files={"file": (name, content)})
            assert answer.status_code == 200 and other.searched and not engine.searched, name
            other.searched.clear()


def test_texts_in_the_target_language_stay_if_a_model_translates_from_it(
    tokenizer: Tokenizer, engine: Echo
) -> None:
    other = Echo(gate=engine.gate)
    served = store_of(
        translator_of(engine, tokenizer, "en", "de"), translator_of(other, tokenizer, "de", "en")
    )
    german = "Ein Hund rennt über die Straße."
    with client(application(served, NOBODY, Limits(), local=True)) as asking:
        for q in (german, [german, "Guten Morgen, wie geht es dir?", "12"]):
            answer = asking.post("/translate", json={"q": q, "source": "auto", "target": "de"})
            assert (
                answer.json()["translatedText"] == q and not engine.searched and not other.searched
            )
        answer = asking.post(
            "/translate", json={"q": [german, "A dog runs."], "source": "auto", "target": "de"}
        )
        assert [each["language"] for each in answer.json()["detectedLanguage"]] == ["de", "en"]


def test_text_in_an_unsupported_language_is_refused_with_its_name(
    tokenizer: Tokenizer, engine: Echo
) -> None:
    served = store_of(translator_of(engine, tokenizer, "en", "de"))
    with client(application(served, NOBODY, Limits(), local=True)) as asking:

        def translate(**fields: object) -> Any:
            return asking.post("/translate", json={"source": "auto", "target": "de"} | fields)

        for q in (
            "Ein Hund rennt über die Straße.",
            ["Guten Morgen, wie geht es dir?", "Ein Hund rennt über die Straße."],
        ):
            answer = translate(q=q)
            assert answer.status_code == 400 and "looks like German" in answer.json()["error"]
            assert "translates English" in answer.json()["error"] and not engine.searched
        assert asking.post("/detect", json={"q": "Ein Hund rennt."}).json()[0]["language"] == "de"
        assert asking.post("/detect", json={"q": " 12 "}).json() == [
            {"language": "und", "confidence": 0.0}
        ]
        # The user knows better.
        assert translate(q="Ein Hund rennt.", source="en").status_code == 200
        for q in ("Hello", "A dog runs.", "OK", "Tom stopped."):
            assert translate(q=q).json()["detectedLanguage"]["language"] == "en", q
        assert translate(q=" ").json()["detectedLanguage"] == {"language": "und", "confidence": 0}
        assert translate(q="12", source="und").status_code == 200
        assert translate(q="12", source="und", target="xx").status_code == 400
        assert translate(q=["A dog runs over the street.", "Ein Hund rennt."]).status_code == 200


# -- while the engine is busy


@contextlib.contextmanager
def busy(engine: Echo, asking: TestClient) -> Iterator[Future[Any]]:
    """A request that the engine works on as long as its gate is shut."""
    engine.gate.clear()
    with ThreadPoolExecutor(1) as another:
        answer = another.submit(asking.post, "/translate", json=WORDED | {"q": "ka\n" * 100})
        try:
            assert engine.began.wait(PATIENCE)
            yield answer
        finally:
            engine.gate.set()


def test_a_full_queue_says_so_before_the_engine_is_done(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine, queue=1)) as asking, busy(engine, asking) as first:
        for path in ("/translate", "/attention", "/translate_file"):
            answer = asking.post(path, json=WORDED)
            assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1, (
                answer.text
            )
        assert asking.get("/health").json() == {"status": "ok"}
        assert (
            asking.get("/languages").status_code
            == asking.post("/detect", json={"q": "ka"}).status_code
            == 200
        )
        metrics = asking.get("/metrics").text
        assert re.search(r"^transduce_queue_requests 1.0$", metrics, re.M)
        assert 'transduce_requests_total{route="/translate",status="503"} 1.0' in metrics
        assert not first.done()
        engine.gate.set()
        assert first.result().json()["translatedText"] == "ka\n" * 100
        assert asking.post("/translate", json=WORDED).status_code == 200


def test_a_queue_full_of_tokens_says_so(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine, queue_tokens=50)) as asking, busy(engine, asking):
        assert asking.post("/translate", json=WORDED | {"q": "ka\n" * 100}).status_code == 503
        with ThreadPoolExecutor(1) as another:
            short = another.submit(asking.post, "/translate", json=WORDED)
            engine.gate.set()
            assert short.result().status_code == 200


def test_documents_beyond_the_limit_are_refused(tokenizer: Tokenizer, engine: Echo) -> None:
    file = {"file": ("a.txt", b"ka")}
    with client(guard(tokenizer, engine, uploads=1)) as asking, ThreadPoolExecutor(1) as another:
        engine.gate.clear()
        first = another.submit(asking.post, "/translate_file", data=WORDED, files=file)
        assert engine.began.wait(PATIENCE)
        assert asking.post("/translate_file", data=WORDED, files=file).status_code == 503
        engine.gate.set()
        assert first.result().status_code == 200
        assert asking.post("/translate_file", data=WORDED, files=file).status_code == 200


def test_refused_text_does_not_affect_other_requests(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine)) as asking, ThreadPoolExecutor(8) as clients:
        texts = [
            "ti ti",
            *(" ".join(pair) for pair in zip(WORDS, reversed(WORDS), strict=True)),
        ] * 4
        together = threading.Barrier(8)

        def ask(text: str) -> Any:
            with contextlib.suppress(threading.BrokenBarrierError):
                together.wait(0.2)
            return asking.post("/translate", json=WORDED | {"q": text})

        for text, answer in zip(texts, clients.map(ask, texts), strict=True):
            assert answer.json() == (
                {"error": "ti ti can't be translated."}
                if text == "ti ti"
                else {"translatedText": text}
            )


def test_internal_errors_are_logged_without_the_text(
    tokenizer: Tokenizer, engine: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    def search(*_: object) -> Any:
        raise ValueError("secret ka lo")

    engine.search = search  # type: ignore[method-assign]
    with client(guard(tokenizer, engine)) as asking:
        answer = asking.post("/translate", json=WORDED)
        assert answer.status_code == 500 and "Internal server error" in answer.json()["error"]
    assert "ValueError in test_limits.py" in caplog.text and "secret" not in caplog.text


def test_limits_can_be_raised(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine, body=1 << 19, characters=1 << 18)) as asking:
        line = "ka " * 40_000
        answer = asking.post("/translate", json=WORDED | {"q": line})
        assert answer.status_code == 200 and len(answer.json()["translatedText"]) == len(line)


# -- pages on other sites


PAGE = {"Origin": "https://example.org", "Sec-Fetch-Site": "cross-site"}


@pytest.mark.parametrize(
    ("origins", "allowed"), [([], False), (["https://example.org"], True), (["*"], True)]
)
def test_pages_of_other_sites_may_ask_if_they_are_listed(
    tokenizer: Tokenizer, engine: Echo, origins: list[str], allowed: bool
) -> None:
    served = store_of(translator_of(engine, tokenizer, "ka", "zu"))
    with client(application(served, NOBODY, Limits(), local=True, origins=origins)) as asking:
        answer = asking.post("/translate", json=WORDED, headers=PAGE)
        assert answer.status_code == (200 if allowed else 403)
        assert ("access-control-allow-origin" in answer.headers) == allowed
        assert ("Retry-After" in answer.headers.get("access-control-expose-headers", "")) == allowed
        preflight = {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
        }
        answer = asking.options("/translate", headers=PAGE | preflight)
        assert (answer.status_code == 200) == allowed
        other = asking.post(
            "/translate", json=WORDED, headers=PAGE | {"Origin": "https://example.com"}
        )
        assert other.status_code == (200 if origins == ["*"] else 403)


# -- language codes


@pytest.mark.parametrize(
    ("source", "target", "known"),
    [
        ("EN", "de", True),
        ("en-US", "de-DE", True),
        ("en_GB", "DE_at", True),
        ("fr", "de", False),
        ("en", "zh-Hans", True),
        ("en", "zh_TW", True),
        ("e", "de", False),
    ],
)
def test_similar_codes_find_the_model(
    tokenizer: Tokenizer, engine: Echo, source: str, target: str, known: bool
) -> None:
    served = store_of(*(translator_of(engine, tokenizer, "en", each) for each in ("de", "zh")))
    with client(application(served, NOBODY, Limits(), local=True)) as asking:
        answer = asking.post("/translate", json={"q": "ka lo", "source": source, "target": target})
        assert (answer.status_code == 200) == known, answer.text


@pytest.mark.parametrize("direction", [("zt", "pb"), ("zh_Hant", "pt_BR")])
def test_old_and_new_codes_of_libretranslate_find_the_model(
    tokenizer: Tokenizer, engine: Echo, direction: tuple[str, str]
) -> None:
    served = store_of(translator_of(engine, tokenizer, *direction))
    with client(application(served, NOBODY, Limits(), local=True)) as asking:
        listed = asking.get("/languages").json()
        assert [(each["code"], each["targets"]) for each in listed] == [
            ("zh-Hant", ["pt-BR"]),
            ("pt-BR", []),
        ]
        for source, target in (("zt", "pb"), ("zh-Hant", "pt-BR"), ("zh-TW", "pt")):
            asked = {"q": "ka lo", "source": source, "target": target}
            assert asking.post("/translate", json=asked).status_code == 200


def test_the_variant_of_the_source_that_is_translated_to_the_target(
    tokenizer: Tokenizer, engine: Echo
) -> None:
    served = store_of(
        translator_of(engine, tokenizer, "en", "de"),
        translator_of(engine, tokenizer, "en_GB", "fr"),
    )
    with client(application(served, NOBODY, Limits(), local=True)) as asking:
        for source, target in (("en", "fr"), ("en-GB", "de"), ("en-US", "fr"), ("en", "de")):
            answer = asking.post(
                "/translate", json={"q": "ka lo", "source": source, "target": target}
            )
            assert answer.status_code == 200, answer.text


def test_a_text_in_the_target_language_is_returned(tokenizer: Tokenizer, engine: Echo) -> None:
    served = store_of(translator_of(engine, tokenizer, "en", "de"))
    german = "Ein Hund rennt über die Straße, und ein Kind schaut zu."
    with client(application(served, NOBODY, Limits(), local=True)) as asking:
        for source in ("de", "DE", "de_DE"):
            target = "de_DE" if source == "de_DE" else "de"
            answer = asking.post(
                "/translate", json={"q": german, "source": source, "target": target, "scores": True}
            )
            assert answer.status_code == 200 and answer.json()["translatedText"] == german, (
                answer.text
            )
        html = asking.post(
            "/translate",
            json={"q": "<b>Hund</b>", "source": "de", "target": "de", "format": "html"},
        )
        assert html.json()["translatedText"] == "<b>Hund</b>"


# -- options


def test_limits_are_parsed() -> None:
    found = limits_from(["limits.texts=1_000", "limits.queue=7", "limits.queue=8"])
    assert (found.texts, found.queue, found.body) == (1000, 8, 1 << 20)
    assert (
        limits_from([]) == Limits() and limits_from(["limits.body=999999999"]).body == 999_999_999
    )
    assert limits_from(["limits.texts=010"]).texts == 10
    for wrong in ("0", "-1", "1.5", "", "x", "1000000000", "00", "٣", "1=1"):
        with pytest.raises(
            UserError, match=r"limits.texts must be a whole number above zero of at most 9"
        ):
            limits_from([f"limits.texts={wrong}"])
    for wrong in ("limits.none=1", "texts=1", "limits.texts"):
        with pytest.raises(UserError, match=r"is not a limit|must be a whole number"):
            limits_from([wrong])


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500M", 500 << 20),
        ("4g", 4 << 30),
        ("1.5K", 1536),
        ("2T", 2 << 40),
        ("0.001K", 1),
        ("07K", 7168),
    ],
)
def test_sizes_of_memory(text: str, size: int) -> None:
    assert memory_from(text) == size


@pytest.mark.parametrize(
    "text", ["", "5", "0M", "0.0G", "5B", "-1M", "1.M", "1.2345K", "1e3M", " 5M", "1234567890K"]
)
def test_what_is_no_size_of_memory_is_refused(text: str) -> None:
    with pytest.raises(
        UserError, match=re.escape(f"'{text}' is not a size. Write, for example, 500M or 4G.")
    ):
        memory_from(text)


def test_limits_by_default() -> None:
    """Changing one of them changes what proxies and clients of a server can rely on."""
    mebibyte = 1_048_576
    assert vars(Limits()) == {
        "body": mebibyte,
        "document": 4 * mebibyte,
        "document_characters": 1_000_000,
        "uploads": 32,
        "depth": 8,
        "texts": 256,
        "characters": 20_000,
        "beam_size": 8,
        "alternatives": 7,
        "terms": 5_000,
        "term_characters": 200,
        "queue": 256,
        "queue_tokens": 60_000,
        "wait": 20,
        "batch_tokens": 1024,
        "connections": 1024,
        "body_seconds": 30,
        "answer_seconds": 60,
        "month_characters": 10**12,
        "document_seconds": 600,
        "documents": 64,
        "drain_seconds": 25,
        "per_key": 1200,
        "per_address": 1200,
    }


def test_limits_are_shown_in_a_table() -> None:
    table = rows(Limits(texts=1234))
    assert len(table) == len({name for name, *_ in table}) == len(vars(Limits()))
    assert ("limits.texts", "1,234", "texts", "texts in one request") in table
    assert all(name.startswith("limits.") and unit and meaning for name, _, unit, meaning in table)
    values = {
        name.removeprefix("limits."): value.replace(",", "") for name, value, *_ in rows(Limits())
    }
    assert {name: int(value) for name, value in values.items()} == vars(Limits())

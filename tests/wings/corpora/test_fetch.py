"""`transduce fetch`, from a server that fails in every way: what is written is whole, or absent."""

import contextlib
import gzip
import hashlib
import json
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx2
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from command_line import run
from forked import killed
from sites import Handler, Site, cut, serving, silent, stall, status, tar, zipped
from transduce.system.errors import UserError
from transduce.system.file_lock import file_lock
from transduce.system.files import verify
from transduce.wings.corpora.fetch import archive, download
from transduce.wings.corpora.fetch.corpus import fetch
from transduce.wings.corpora.fetch.table import ENTRY_KEYS, PART_KEYS, choose, find, read_table
from transduce.wings.corpora.fetch.texts import write_text
from waiting import PATIENCE, wait_for

ENGLISH = b"".join(b"A dog runs %d times.\n" % number for number in range(3000))
GERMAN = b"".join(b"Ein Hund l\xc3\xa4uft %d-mal.\n" % number for number in range(3000))
MEMBERS = {"data/train.en": ENGLISH, "data/train.de": GERMAN}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No long waiting, and no proxy of the machine that the tests run on."""
    monkeypatch.setattr(download, "FIRST_WAIT_SECONDS", 0.001)
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


def part(site: Site, path: str, checksum: str = "", **fields: Any) -> dict[str, Any]:
    """A part of a table: where, and with which checksum ("right": that of what is there now)."""
    if checksum == "right":
        checksum = f"sha256:{hashlib.sha256(site.files[path]).hexdigest()}"
    return {"url": site.address + path} | ({"checksum": checksum} if checksum else {}) | fields


def table(folder: Path, **splits: list[dict[str, Any]]) -> Path:
    """A table with one corpus, toy."""
    facts = {"title": "A toy", "languages": ["en-de"], "licence": "CC0"}
    (folder / "table.toml").write_text(tomli_w.dumps({"toy": facts | splits}))
    return folder / "table.toml"


def offer(
    site: Site, folder: Path, content: bytes | None = None, checksum: str = "right"
) -> tuple[object, ...]:
    """Put an archive with a corpus on the site; the arguments of the command that fetches it."""
    site.files["/a.tgz"] = tar(MEMBERS) if content is None else content
    file = table(folder, train=[part(site, "/a.tgz", checksum, member="data/train.{language}")])
    return "fetch", "toy", "--out", folder / "toy", "--table", file


def check_whole(folder: Path) -> None:
    """The corpus is there, nothing else is, and nothing is left over."""
    verify(folder / "toy", hashes=True)
    assert {path.name for path in (folder / "toy").iterdir()} == {
        "train.en",
        "train.de",
        "SOURCE.md",
        "source.json",
        "manifest.json",
    }
    assert (folder / "toy/train.en").read_bytes() == ENGLISH
    assert (folder / "toy/train.de").read_bytes() == GERMAN
    assert {path.name for path in folder.iterdir()} <= {"toy", "table.toml", "kept"}


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one sentence with which a command is refused; other lines are about attempts that failed before."""
    status, output, errors = run(capsys, *arguments)
    assert status == 2, (status, output, errors)
    assert "Traceback" not in errors
    *attempts, sentence = errors.splitlines()
    assert all("again in" in line for line in attempts), errors
    assert sentence.startswith("transduce: ") and sentence[-1] in ".?)", sentence
    return sentence.removeprefix("transduce: ")


# What is written


def test_corpus_of_many_parts_is_joined(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.files["/train.tgz"] = tar(
        {"news/n.en": b"\xef\xbb\xbfNews.\r\nMore.\r\n", "news/n.de": b"Neues.\nMehr."}
    )
    site.files["/more.tar"] = tar(
        {"g.de.gz": gzip.compress(b"Gro\xdf.\n"), "g.en.gz": gzip.compress(b"Big.\n")}, "w"
    )
    site.files["/talks.tgz"] = tar(
        {
            "t.en": b"<url>x</url>\n<title>A talk</title>\n<talkid>7</talkid>\nI talk.\n",
            "t.de": b"<url>x</url>\n<translator href='y'>z</translator>\n<title> Ein Vortrag </title>\nIch rede.\n",
        }
    )
    site.files["/test.zip"] = zipped(
        {
            "src.sgm": b'<srcset>\n<doc docid="a"><p>\n<seg id="1">\n R&amp;D  &lt;b&gt; AT&T\n</seg></p></doc>',
            "ref.sgm": b"<REFSET><DOC sysid='r' docid='a'><SEG id='1'>F&amp;E &#252;ber &unknown;</SEG></DOC></REFSET>",
        }
    )
    for language, text in (("en", b"Valid.\n"), ("de", "Gültig.\n".encode())):
        site.files[f"/valid.{language}.gz"] = site.files[f"/extra.{language}"] = gzip.compress(text)
    file = table(
        tmp_path,
        train=[
            part(site, "/train.tgz", "right", member="news/n.{language}"),
            part(
                site,
                "/more.tar",
                f"md5:{hashlib.md5(site.files['/more.tar']).hexdigest()}",
                member="g.{language}.gz",
            ),
            part(site, "/talks.tgz", member="t.{language}", format="ted"),
        ],
        valid=[part(site, "/valid.{language}.gz")],
        test=[part(site, "/test.zip", source="src.sgm", target="ref.sgm", format="sgm")],
        extra_2=[part(site, "/extra.{language}")],
    )
    status, output, errors = run(
        capsys, "fetch", "toy", "--out", tmp_path / "new/toy", "--table", file
    )
    assert status == 0, errors
    wanted = {
        "train.en": "News.\nMore.\nBig.\nA talk\nI talk.\n",
        "train.de": "Neues.\nMehr.\nGro�.\nEin Vortrag\nIch rede.\n",
        "valid.en": "Valid.\n",
        "valid.de": "Gültig.\n",
        "test.en": "R&D <b> AT&T\n",
        "test.de": "F&E über &unknown;\n",
        "extra_2.en": "Valid.\n",
        "extra_2.de": "Gültig.\n",
    }
    assert {name: (tmp_path / "new/toy" / name).read_text() for name in wanted} == wanted
    assert "5 pairs in" in output and "Lines that were not UTF-8: 1;" in output and "CC0" in output
    source = (tmp_path / "new/toy/SOURCE.md").read_text()
    assert "CC0" in source and hashlib.sha256(site.files["/talks.tgz"]).hexdigest() in source
    assert json.loads((tmp_path / "new/toy/source.json").read_text())["pairs"] == {
        **{"train": 5, "valid": 1, "test": 1, "extra_2": 1}
    }


def test_suggested_train_command_works(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By `prepare`, whose arguments are the same, and which is quicker."""
    _, output, _ = run(capsys, *offer(site, tmp_path))
    words = shlex.split(output.splitlines()[-1].removeprefix("To train on this corpus: "))
    assert words[:2] == ["transduce", "train"] and words[-2:] == ["--out", "MODEL"]
    status, output, errors = run(
        capsys, "prepare", *words[2:-1], tmp_path / "data", "data.vocab_size=300"
    )
    assert status == 0, errors
    assert "pairs to train on" in output


def test_swapped_languages_swap_the_files(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.files["/t.zip"] = zipped({"src.de": b"Hund\n", "ref.en": b"dog\n"})
    file = table(
        tmp_path, test=[part(site, "/t.zip", source="src.{source}", target="ref.{target}")]
    )
    status, output, _ = run(
        capsys, "fetch", "toy:de-en", "--out", tmp_path / "toy", "--table", file
    )
    assert status == 0 and "test.de and" in output and "To train" not in output, (
        "it has no text to train on"
    )
    assert (tmp_path / "toy/test.de").read_text() == "Hund\n"


lines = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))


@given(
    lines=st.lists(lines, min_size=1),
    ends=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    block=st.integers(1, 9),
)
def test_lines_come_out_as_they_were(lines: list[str], ends: str, last: bool, block: int) -> None:
    import io

    from transduce.wings.corpora.fetch import texts

    text = ends.join(lines) + (ends if last or not lines[-1] else "")
    before, texts.TEXT_BLOCK_BYTES = texts.TEXT_BLOCK_BYTES, block
    try:
        written = write_text(io.BytesIO(text.encode()), file := io.BytesIO(), "text")
    finally:
        texts.TEXT_BLOCK_BYTES = before
    wanted = "".join(f"{line}\n" for line in lines).removeprefix("\ufeff").encode()
    assert (file.getvalue(), written.lines, written.repaired) == (wanted, len(lines), 0)


@given(st.lists(lines.map(lambda line: " ".join(line.split())), min_size=1))
def test_segments_come_out_as_they_were(texts: list[str]) -> None:
    import html
    import io

    segments = "".join(
        f'<seg id="{i}"> {html.escape(text)}\n</seg>\n' for i, text in enumerate(texts)
    )
    file = io.BytesIO()
    written = write_text(io.BytesIO(f"<doc docid='d'>{segments}</doc>".encode()), file, "sgm")
    assert (file.getvalue().decode(), written.lines) == (
        "".join(f"{text}\n" for text in texts),
        len(texts),
    )


# Interruptions


@pytest.mark.parametrize("validator", ["ETag", "Last-Modified", ""])
@pytest.mark.parametrize("ranges", [True, False])
def test_interrupted_download_resumes(
    validator: str, ranges: bool, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path)
    site.validator, site.ranges, site.faults = validator, ranges, [cut(1000), cut(1500)]
    status, _, errors = run(capsys, *arguments)
    assert status == 0, errors
    check_whole(tmp_path)
    first, second, third = site.asked
    assert (first.range, second.range) == ("", "bytes=1000-")
    assert third.range == ("bytes=2500-" if ranges else "bytes=1500-")
    assert "received 1000 bytes" in errors


def test_download_without_validator_or_checksum_starts_again(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path, checksum="")
    site.validator, site.faults = "", [cut(1000)]
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)
    assert [asked.range for asked in site.asked] == ["", ""]


def test_killed_process_resumes_its_download(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path)
    site.faults = [stall(2000)]
    command = [sys.executable, "-c", "from transduce.cli import main; main()", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        wait_for(
            lambda: any(
                file.stat().st_size == 2000 for file in tmp_path.glob("toy.downloads/*.part")
            ),
            lambda: process.poll() is not None,
        )
        assert "Another process is downloading" in refused(capsys, *arguments)
        process.kill()
    (tmp_path / ".toy.aside-1234").mkdir()  # as if it had been killed while unpacking
    assert not (tmp_path / "toy").exists()
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)
    assert [asked.range for asked in site.asked] == ["", "bytes=2000-"]


OLD = {
    "longer": tar(MEMBERS | {"other": bytes(90_000)}, "w"),
    "as long": tar(MEMBERS | {"data/train.en": ENGLISH.upper()}, "w"),
}


def changing(old: bytes, new: bytes) -> Callable[[Handler], None]:
    """Send the beginning of a version that is replaced in the meantime."""

    def answer(handler: Handler) -> None:
        handler.site.files["/a.tgz"] = old
        handler.answer(cut=1000)
        handler.site.files["/a.tgz"] = new

    return answer


@pytest.mark.parametrize("checks_condition", [True, False])
@pytest.mark.parametrize("checksum", ["right", ""])
@pytest.mark.parametrize("old", OLD)
def test_changed_file_is_downloaded_again(
    old: str,
    checksum: str,
    checks_condition: bool,
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also where the server would send the end of the new version behind the beginning of the old one."""
    new = tar(MEMBERS, "w")
    arguments = offer(site, tmp_path, new, checksum)
    site.checks_condition = checks_condition
    site.faults = [changing(OLD[old], new)]
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)


QUICKLY = "from transduce.wings.corpora.fetch import download; download.FIRST_WAIT_SECONDS = 0.001"


@pytest.mark.slow
def test_killed_at_any_file_change_the_same_command_completes(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What there is before is the beginning of another version, and no checksum could tell a mixture of both."""
    (tmp_path / "begun").mkdir()
    new = tar(MEMBERS, "w")
    arguments = offer(site, tmp_path / "begun", new, checksum="")
    site.faults = [changing(OLD["as long"], new), status(404)]
    refused(capsys, *arguments)
    ended, change = -signal.SIGKILL, 0
    while ended:
        change += 1
        folder = shutil.copytree(tmp_path / "begun", tmp_path / str(change))
        arguments = offer(site, folder, new, checksum="")
        ended = killed(change, list(map(str, arguments)), code=QUICKLY)
        assert ended in (0, -signal.SIGKILL)
        assert run(capsys, *arguments)[0] == 0
        check_whole(folder)
    assert change > 20


def test_files_of_another_running_process_are_left_alone(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one does that puts its downloads elsewhere."""
    arguments = offer(site, tmp_path)
    aside = tmp_path / ".toy.aside-1234"
    aside.mkdir()
    with file_lock(tmp_path / ".toy.aside-1234.lock", "busy"):
        assert run(capsys, *arguments)[0] == 0 and aside.is_dir()
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)


def test_downloaded_bytes_need_no_disk_space(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = offer(site, tmp_path)
    size = len(site.files["/a.tgz"])
    site.ranges, site.faults = False, [cut(1000)]
    free = iter([size, size - 1000, size])
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=next(free)))
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)


def test_partial_download_that_is_no_shorter_than_the_file_starts_again(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a power cut between the last byte and the renaming, or if a shorter version is offered now."""
    arguments = offer(site, tmp_path, checksum="")
    site.faults = [cut(1000), status(404)]
    refused(capsys, *arguments)
    (part,) = tmp_path.glob("toy.downloads/*.part")
    size = len(site.files["/a.tgz"])
    part.write_bytes(bytes(size))
    site.asked.clear()
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)
    assert [asked.range for asked in site.asked] == [f"bytes={size}-", ""]


@pytest.mark.parametrize(
    "sent", ["bytes 0-999/*", "bytes 500-1499/*", "bytes 500-1499/1500", "chapters 1-2/3"]
)
def test_unrequested_part_is_ignored(
    sent: str, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path, checksum="")
    site.faults = [
        lambda handler: handler.say(206, {"Content-Range": sent}, site.files["/a.tgz"][:1000])
    ]
    status, _, errors = run(capsys, *arguments)
    assert status == 0 and "another part or version" in errors
    check_whole(tmp_path)


@pytest.mark.parametrize(
    "tag, sent", [("{}", "1000-9999/10000"), ("", "500-9499/10000"), ("", "1000-9999/*")]
)
def test_server_that_repeats_the_beginning_is_given_up(
    tag: str, sent: str, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that arrived before are no progress."""

    def answer(handler: Handler) -> None:
        headers = {"ETag": f'"{tag.format(len(site.asked))}"', "Content-Range": f"bytes {sent}"}
        handler.say(
            206 if site.asked[-1].range else 200, headers | {"Content-Length": "9000"}, bytes(1000)
        )

    arguments = offer(site, tmp_path)
    site.faults = [answer] * 50
    assert "(6 tries)" in refused(capsys, *arguments)
    assert len(site.asked) == 7


@pytest.mark.parametrize("code", [404, 503])
def test_odd_characters_of_a_server(
    code: int, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path)
    site.faults = [
        lambda handler: handler.wfile.write(b"HTTP/1.0 %d SP\x85AM\r\n\r\n" % code) and None
    ] * 6
    sentence = refused(capsys, *arguments)
    assert "SP" in sentence and sentence.isprintable()


def test_the_compression_of_the_file_itself_is_kept(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some servers call it an encoding."""
    arguments = offer(site, tmp_path)
    site.faults = [
        lambda handler: handler.say(200, {"Content-Encoding": "gzip"}, site.files["/a.tgz"])
    ]
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)


def test_shorter_ranges_than_asked_for_are_continued(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path, checksum="")
    content = site.files["/a.tgz"]

    def smaller(handler: Handler) -> None:
        tag, headers = site.version("/a.tgz"), {"Content-Range": f"bytes 1000-1999/{len(content)}"}
        handler.say(206, headers | {"ETag": tag, "Content-Length": "1000"}, content[1000:2000])

    site.faults = [cut(1000), smaller]
    status, _, errors = run(capsys, *arguments)
    assert status == 0 and f"2,000 of {len(content):,} bytes" in errors
    check_whole(tmp_path)
    assert site.asked[-1].range == "bytes=2000-"


def test_transient_errors_are_retried(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path)
    site.faults = [status(500), status(503, Retry_After="0"), status(429)]
    ended, _, errors = run(capsys, *arguments)
    assert ended == 0 and errors.count("again in") == 3, errors
    check_whole(tmp_path)


def test_silent_server_is_asked_again(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.25)

    def patiently(handler: Handler) -> None:
        """Answer, and be waited for from now on: this machine may be slower than the silence is long."""
        monkeypatch.setattr(download, "TIMEOUT_SECONDS", PATIENCE)
        handler.answer(cut=1500)

    arguments = offer(site, tmp_path)
    site.faults = [silent, stall(1000), silent, patiently]
    status, _, errors = run(capsys, *arguments)
    assert status == 0 and errors.count("no data arrived for") >= 3, errors
    check_whole(tmp_path)


def test_permanent_errors_are_reported(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = offer(site, tmp_path)
    for code, sentences in (
        (404, "answers 404 Not Found. Check whether the table of corpora is out of date."),
        (401, "answers 401 Unauthorized. Check whether the server or a proxy asks for a login."),
    ):
        site.faults = [status(code)]
        assert sentences in refused(capsys, *arguments)
    assert len(site.asked) == 2, "each is asked for once"
    site.faults = [status(500)] * 6
    assert "answers 500 Internal Server Error (6 tries). Repeat the command later" in refused(
        capsys, *arguments
    )
    assert len(site.asked) == 8
    site.faults = [cut(1000), *[cut(0)] * 6]
    assert "received 0 bytes" in refused(capsys, *arguments)
    with monkeypatch.context() as impatient:
        impatient.setattr(download, "TIMEOUT_SECONDS", 0.1)
        site.faults = [silent] * 6
        assert "no data arrived for 0 s" in refused(capsys, *arguments)
        site.faults = []
    assert run(capsys, *arguments)[0] == 0
    assert site.asked[-1].range == "bytes=1000-"
    nobody = table(tmp_path, train=[{"url": "http://127.0.0.1:9/a.tgz", "member": "{language}"}])
    assert "Connection refused" in refused(
        capsys, "fetch", "toy", "--out", tmp_path / "no", "--table", nobody
    )
    assert not (tmp_path / "no").exists()


def test_a_wrong_checksum(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = offer(site, tmp_path)
    right = site.files["/a.tgz"]
    site.files["/a.tgz"] = right[:-1] + b"?"
    sentence = refused(capsys, *arguments)
    assert hashlib.sha256(right).hexdigest() in sentence and "removed" in sentence
    site.files["/a.tgz"] = b"<!DOCTYPE html>Please log in"
    assert "it is a web page" in refused(capsys, *arguments)
    assert not [*tmp_path.glob("toy.downloads/*")]
    site.files["/a.tgz"] = right
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf\n<!DOCTYPE  html>",
        b"<?xml version='1.0'?>\n<!DOCTYPE html PUBLIC>",
        b"<!-- a --><!--\nb -->\n<HTML lang=en>",
    ],
)
def test_web_page_in_place_of_a_corpus_is_refused(
    content: bytes, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "it is a web page" in refused(capsys, *offer(site, tmp_path, content, checksum=""))
    assert not [*tmp_path.glob("toy.downloads/*")]


def test_texts_that_look_like_web_pages(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And do so for long: comments without an end take no time."""
    for language in ("en", "de"):
        site.files[f"/{language}"] = b"<!---->" * 5000 + b"<head> " + language.encode()
    file = table(tmp_path, train=[part(site, "/{language}")])
    assert run(capsys, "fetch", "toy", "--out", tmp_path / "toy", "--table", file)[0] == 0


def test_one_file_for_both_languages(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.files["/en"] = site.files["/de"] = b"Your trial has ended.\n"
    file = table(tmp_path, train=[part(site, "/{language}")])
    assert "are byte-identical" in refused(
        capsys, "fetch", "toy", "--out", tmp_path / "toy", "--table", file
    )


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may become larger, which is what a full disk looks like."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = offer(site, tmp_path)
    size = len(site.files["/a.tgz"])
    for room in (size // 2, size + 1000):  # the download doesn't fit; the text doesn't
        with room_for(room):
            assert "There is no room for" in refused(capsys, *arguments)
        assert not (tmp_path / "toy").exists()
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)
    assert [asked.range for asked in site.asked] == ["", f"bytes={size // 2}-"]
    site.faults = [status(200, Content_Length=str(10**18))]
    assert "it needs 1,000,000,000,000,000,000 bytes" in refused(
        capsys, *arguments[:3], tmp_path / "again", *arguments[4:]
    )


def test_a_disk_that_can_not_be_written_to(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which is not mistaken for a network that may be better in a moment."""
    arguments = offer(site, tmp_path)
    part = (
        tmp_path / "kept" / (download.file_name(site.address + "/a.tgz") + download.UNKNOWN_VERSION)
    )
    part.mkdir(parents=True)
    assert "Is a directory. Choose another place" in refused(
        capsys, *arguments, "--downloads", tmp_path / "kept"
    )
    assert len(site.asked) == 1
    part.rmdir()
    # As in a folder that can only be read.
    (tmp_path / "kept/.lock").symlink_to(tmp_path / "no folder/.lock")
    assert "Not a directory" in refused(
        capsys, *arguments, "--downloads", tmp_path / "table.toml/kept"
    )
    assert run(capsys, *arguments, "--downloads", tmp_path / "kept")[0] == 0


# Redirects and proxies


def test_redirects(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = offer(site, tmp_path)
    with serving(Site(site.files)) as other:
        elsewhere = other.address.replace("127.0.0.1", "localhost") + "/a.tgz"
        site.faults = [status(302, Location=elsewhere), status(301, Location=elsewhere)]
        other.faults = [cut(1000)]
        assert run(capsys, *arguments)[0] == 0
        check_whole(tmp_path)
        assert [asked.range for asked in other.asked] == ["", "bytes=1000-"]
    for location in ("file:///etc/passwd", "/a.tgz"):
        site.faults = [status(302, Location=location)] * 50
        assert "Check whether the address is right." in refused(
            capsys, *arguments[:3], tmp_path / "no", *arguments[4:]
        )
    assert not (tmp_path / "no").exists()


def test_the_name_of_a_download_is_its_address() -> None:
    url = "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz"
    assert download.file_name(url) == "www.statmt.org_wmt14_training-parallel-nc-v9.tgz"


def test_no_redirect_leads_from_https_to_http() -> None:
    def follow(new: str) -> None:
        asked = httpx2.Request("GET", "https://example.org/a.tgz")
        download._refuse_insecure_redirect(
            httpx2.Response(302, headers={"Location": new}, request=asked)
        )

    follow("https://example.com/b.tgz")
    follow("/b.tgz")
    with pytest.raises(httpx2.UnsupportedProtocol, match="redirects to http://example"):
        follow("http://example.org/a.tgz")


def test_a_missing_package_is_named() -> None:
    call = "cli.main(['fetch', 'multi30k', '--out', 'nowhere'])"
    script = f"import sys; sys.modules['httpx2'] = None; from transduce import cli; {call}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "pip install 'transduce[fetch]'" in " ".join(
        done.stderr.split()
    )


def test_a_proxy_of_the_environment(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = offer(site, tmp_path)
    monkeypatch.setenv("http_proxy", site.address)
    monkeypatch.setenv("no_proxy", "")
    site.files["http://corpora.invalid/a.tgz"] = site.files["/a.tgz"]
    file = tmp_path / "table.toml"
    file.write_text(file.read_text().replace(site.address, "http://corpora.invalid"))
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)


# Archives


def odd(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    """A member that an archive should not have."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, link, size
    return entry


ODD = (
    odd("../evil", size=3),
    odd("data/../../evil", size=3),
    odd("/tmp/transduce-evil", size=3),
    odd("data", tarfile.SYMTYPE, "/tmp"),
    odd("data/evil", tarfile.LNKTYPE, "/etc/passwd"),
    odd("evil-fifo", tarfile.FIFOTYPE),
    odd("evil-device", tarfile.CHRTYPE),
)


def test_odd_members_have_no_effect(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path, tar(MEMBERS, also=ODD))
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)
    assert not Path("/tmp/transduce-evil").exists() and not (tmp_path.parent / "evil").exists()
    names = {"../evil": b"evil", "/tmp/transduce-evil": b"evil", "data\\..\\..\\evil": b"evil"}
    arguments = offer(site, tmp_path, zipped(names | MEMBERS))
    assert run(capsys, *arguments[:3], tmp_path / "second", *arguments[4:])[0] == 0
    assert not Path("/tmp/transduce-evil").exists() and not (tmp_path.parent / "evil").exists()


def link_in_zip(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o120777 << 16
    return entry


ZEROS = bytes(archive.MIN_LIMIT_BYTES + 1)
DE = {"data/train.de": GERMAN}
SPARSE = odd("data/train.en", size=3)
SPARSE.pax_headers = {"GNU.sparse.map": "x"}
REFUSED = {
    "symlink": (
        tar(DE, also=(odd("data/train.en", tarfile.SYMTYPE, "/etc/passwd"),)),
        "is a link or a device",
    ),
    "hard link": (
        tar(DE, also=(odd("data/train.en", tarfile.LNKTYPE, "data/train.de"),)),
        "is a link or a device",
    ),
    "fifo": (tar(DE, also=(odd("data/train.en", tarfile.FIFOTYPE),)), "is a link or a device"),
    "device": (tar(DE, also=(odd("data/train.en", tarfile.BLKTYPE),)), "is a link or a device"),
    "link in a zip": (
        zipped({link_in_zip("data/train.en"): b"/etc/passwd"} | DE),
        "is a link or a device",
    ),
    "sparse": (tar(DE, also=(SPARSE,)), "is damaged"),
    "endless": (
        odd("endless", b"Z", size=1 << 70).tobuf(tarfile.GNU_FORMAT) + tar(MEMBERS, "w"),
        "endless is too large",
    ),
    "missing": (tar(DE), "doesn't hold data/train.en"),
    "twice": (tar(MEMBERS, also=(odd("data/train.en", size=3),)), "twice"),
    "bomb": (tar({"data/train.en": ZEROS}), "100 times its size"),
    "bomb beside it": (tar({"zeros": ZEROS} | MEMBERS), "100 times its size"),
    "bomb in a member": (tar({"data/train.en": gzip.compress(ZEROS)}), "100 times its size"),
    "bomb in a zip": (zipped({"data/train.en": ZEROS}), "100 times its size"),
    "bomb of headers": (
        tar(MEMBERS, also=(odd("h", tarfile.XHDTYPE, size=2_000_000),)),
        "100 times its size",
    ),
    "truncated": (tar(MEMBERS)[:-2000], "is damaged"),
    "truncated tar": (tar(MEMBERS, "w")[:40_000], "is damaged"),
    "truncated zip": (zipped(MEMBERS)[:-100], "is damaged"),
    "zip that begins before the file": (
        zipped(MEMBERS)[:-10] + bytes([255] * 3 + [0] * 7),
        "is damaged",
    ),
    "bit rot": (tar(MEMBERS)[:9000] + b"\xff" * 100 + tar(MEMBERS)[9100:], "is damaged"),
    "web page": (b"<html>Log in</html>", "it is a web page"),
    "empty": (b"", "it is empty (0 bytes, removed)"),
    "not aligned": (
        tar(MEMBERS | {"data/train.en": b"one\n"}),
        "has 1 line and data/train.de has 3,000",
    ),
    "no text": (tar({"data/train.en": b"", "data/train.de": b""}), "has no text"),
}


@pytest.mark.parametrize("content, reason", REFUSED.values(), ids=REFUSED)
def test_archives_that_are_refused(
    content: bytes, reason: str, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path, content, checksum="")
    assert reason in refused(capsys, *arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"table.toml", "toy.downloads"}
    assert len(site.asked) == 1


def test_parts_that_share_a_file_name_are_refused(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [part(site, "/a/{language}"), part(site, "/a_{language}")]
    file = table(tmp_path, train=parts[:1], test=parts[1:])
    assert "share a file name" in refused(
        capsys, "fetch", "toy", "--out", tmp_path / "toy", "--table", file
    )
    with serving(Site({"/en": b"other\n", "/de": b"andere\n"})) as other:
        site.files |= {"/en": b"one\n", "/de": b"eine\n"}
        file = table(tmp_path, train=[part(site, "/{language}")], test=[part(other, "/{language}")])
        assert run(capsys, "fetch", "toy", "--out", tmp_path / "toy", "--table", file)[0] == 0
    assert (tmp_path / "toy/test.en").read_text() == "other\n"


def test_licences_of_all_archives_are_kept(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, pack in (("CC0", zipped), ("MIT", tar)):
        site.files[f"/{name}.zip"] = pack(
            {"t.en": b"dog\n", "t.de": b"Hund\n", "LICENSE": name.encode()}
        )
    parts = [
        part(site, f"/{name}.zip", member="t.{language}", notes=["LICENSE"])
        for name in ("CC0", "MIT")
    ]
    assert (
        run(
            capsys,
            "fetch",
            "toy",
            "--out",
            tmp_path / "toy",
            "--table",
            table(tmp_path, train=parts),
        )[0]
        == 0
    )
    assert (tmp_path / "toy/LICENSE").read_text() == "CC0\n\nMIT"


def test_a_licence_never_replaces_or_joins_a_file_of_the_corpus(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for note in ("data/train.en", "Train.DE", "SOURCE.md", "source.json", "manifest.json"):
        file = table(tmp_path, train=[part(site, "/a.zip", member="{language}", notes=[note])])
        sentence = refused(capsys, "fetch", "toy", "--out", tmp_path / "toy", "--table", file)
        assert f"the note {note} has" in sentence
    assert not site.asked


def test_invalid_addresses_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = table(tmp_path, train=[{"url": "http://a:x/{language}"}])
    assert "Check whether the address is right." in refused(
        capsys, "fetch", "toy", "--out", tmp_path / "no", "--table", file
    )


def test_segments_must_be_the_same_on_both_sides(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (f'<doc docid="d"><seg id="{i}">x</seg></doc>'.encode() for i in (1, 2))
    site.files["/t.zip"] = zipped({"t.en": one, "t.de": other})
    file = table(tmp_path, test=[part(site, "/t.zip", member="t.{language}", format="sgm")])
    assert "same segments" in refused(
        capsys, "fetch", "toy", "--out", tmp_path / "toy", "--table", file
    )


# What is there already


def test_existing_corpus_is_not_fetched_again(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = offer(site, tmp_path)
    first = run(capsys, *arguments)[1]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "toy").iterdir()}
    status, output, errors = run(capsys, *arguments)
    assert status == 0 and "already holds toy" in errors
    assert output.splitlines()[-2:] == first.splitlines()[-2:]
    assert len(site.asked) == 1 and {path: path.stat().st_mtime_ns for path in before} == before
    assert "holds toy. Name another" in refused(capsys, "fetch", "toy:de-en", *arguments[2:])
    (tmp_path / "toy/train.de").write_bytes(b"")
    assert "train.de is damaged" in refused(capsys, *arguments)
    (tmp_path / "mine").mkdir()
    (tmp_path / "gone").symlink_to("nowhere")
    assert "exists already" in refused(capsys, *arguments[:3], tmp_path / "gone", *arguments[4:])
    assert "exists already" in refused(capsys, *arguments[:3], tmp_path / "mine", *arguments[4:])
    assert list((tmp_path / "mine").iterdir()) == [] and len(site.asked) == 1


def test_downloads_that_are_kept_are_used(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (*offer(site, tmp_path), "--downloads", tmp_path / "kept")
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)
    assert run(capsys, *arguments[:3], tmp_path / "second", *arguments[4:])[0] == 0
    assert len(site.asked) == 1
    (kept,) = (tmp_path / "kept").glob("*a.tgz")
    kept.write_bytes(b"something else")
    assert "that the table describes" in refused(
        capsys, *arguments[:3], tmp_path / "third", *arguments[4:]
    )


def test_only_its_own_downloads_are_removed(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "toy.downloads"
    arguments = offer(site, tmp_path)
    for _ in range(2):
        assert run(capsys, *arguments, "--downloads", folder)[0] == 0
        (archive,) = folder.iterdir()
    archive.with_name(f"{archive.name}.{'0' * 16}.part").touch()
    (folder / "precious").touch()
    assert run(capsys, *arguments)[0] == 0
    assert [path.name for path in folder.iterdir()] == ["precious"]
    shutil.rmtree(tmp_path / "toy")
    assert run(capsys, *arguments)[0] == 0
    assert [path.name for path in folder.iterdir()] == ["precious"]
    (folder / "precious").unlink()
    assert run(capsys, *arguments)[0] == 0
    check_whole(tmp_path)


def test_nothing_is_downloaded_unasked(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, option, file = offer(site, tmp_path)
    status, output, _ = run(capsys, "fetch", option, file)
    assert status == 0 and re.search(r"toy +en-de +not known +CC0", output)
    status, output, _ = run(capsys, "fetch", "toy", option, file)
    assert status == 0 and "/a.tgz" in output and "CC0" in output and "--out DIR" in output
    assert not site.asked and [path.name for path in tmp_path.iterdir()] == ["table.toml"]


# Collections


def collection(site: Site, folder: Path) -> Path:
    """A table of a collection like OPUS."""
    toys = {
        "title": "{corpus} {version}",
        "languages": "any",
        "licence": "see LICENSE",
        "catalogue": site.address
        + "/api?corpus={corpus}&source={source}&target={target}&version={version}",
        "train": [
            {
                "url": site.address + "/{corpus}/{version}/{first}-{second}.txt.zip",
                "member": "{corpus}.{first}-{second}.{language}",
                "notes": ["LICENSE", "README"],
            }
        ],
    }
    (folder / "table.toml").write_text(tomli_w.dumps({"toys": toys}))
    return folder / "table.toml"


def test_a_collection(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # One answer waits for another process to fetch all.
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", PATIENCE)
    known = {"corpus": "Books", "version": "v9", "source": "de", "target": "en", "size": 3}
    site.files["/api?corpus=Books&source=en&target=de&version=latest"] = json.dumps(
        {"corpora": [known]}
    ).encode()
    site.files["/Books/v9/de-en.txt.zip"] = zipped(
        {"Books.de-en.de": b"Buch\n", "Books.de-en.en": b"Book\n", "LICENSE": b"CC0"}
    )
    file = collection(site, tmp_path)
    status, output, errors = run(
        capsys, "fetch", "toys:Books:en-de", "--out", tmp_path / "toy", "--table", file
    )
    assert status == 0, errors
    assert "Books v9" in output and (tmp_path / "toy/train.en").read_text() == "Book\n"
    assert (tmp_path / "toy/LICENSE").read_text() == "CC0"
    site.asked.clear()
    entry, request = find(read_table(file.read_text(), "table.toml"), "toys:Books/v9:de-en")

    def overtaken(handler: Handler) -> None:
        fetch(choose(entry, request)._replace(name="toys:Books:en-de"), tmp_path / "third")
        handler.answer()

    site.faults = [overtaken]
    status, output, errors = run(
        capsys, "fetch", "toys:Books:en-de", "--out", tmp_path / "third", "--table", file
    )
    assert status == 0 and len(site.asked) == 2, "another process was quicker"
    site.asked.clear()
    assert (
        run(capsys, "fetch", "toys:Books/v9:de-en", "--out", tmp_path / "second", "--table", file)[
            0
        ]
        == 0
    )
    assert [asked.path for asked in site.asked] == ["/Books/v9/de-en.txt.zip"]
    site.files["/api?corpus=Books&source=en&target=fr&version=latest"] = b'{"corpora": []}'
    site.files["/api?corpus=Books&source=en&target=cs&version=latest"] = b"<html>"
    for language, odd in (
        ("sk", {"size": 1e999}),
        ("sl", {"size": -1}),
        ("sr", {"version": "../x\ny"}),
    ):
        answer = json.dumps({"corpora": [known | {"source": "en", "target": language} | odd]})
        site.files[f"/api?corpus=Books&source=en&target={language}&version=latest"] = (
            answer.encode()
        )
    for name, reason in (
        *((f"toys:Books:en-{language}", "is not a catalogue") for language in ("sk", "sl", "sr")),
        ("toys:Books:en-fr", "toys has no Books for en-fr"),
        ("toys:Books:en-cs", "is not a catalogue"),
        ("toys:Books:en-it", "toys:Books/VERSION:en-it, which needs no catalogue"),
        ("toys:en-de", "doesn't name a corpus and its languages"),
        ("toys:../evil:en-de", "names no corpus of the collection"),
        ("toys:Books:en", "not a pair of languages"),
    ):
        assert reason in refused(capsys, "fetch", name, "--out", tmp_path / "no", "--table", file)


# The table


def test_tables_that_use_a_text_twice_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, member = (
        {"url": "https://a/b.{language}"},
        {"url": "https://a/b.tgz", "member": "{language}"},
    )
    for parts in (
        [whole, whole],
        [member, member],
        [{"url": "https://a/b"}],
        [{"url": "https://a/b.tgz"}, member],
    ):
        assert "In the table, toy uses" in refused(
            capsys, "fetch", "toy", "--table", table(tmp_path, train=parts)
        )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"licence": None}, "licence is missing"),
        ({"licens": "x"}, "Did you mean licence?"),
        ({"languages": ["en"]}, 'Write "any", or a list of pairs'),
        ({"languages": ["en-../de"]}, 'Write "any", or a list of pairs'),
        ({"languages": []}, 'Write "any", or a list of pairs'),
        ({"train": None}, "a table of files is missing"),
        ({"train": [{"member": "x"}]}, "url is missing"),
        ({"train": [{"url": "file:///etc/passwd"}]}, "begins with https"),
        ({"train": [{"url": "https://["}]}, "begins with https"),
        ({"train": [{"url": "https://a/{lang}"}]}, "{lang}"),
        ({"title": "{language}"}, "{language}"),
        ({"catalogue": "x"}, "begins with https"),
        ({"catalogue": "https://a/{language}"}, "{language}"),
        ({"train": [{"url": "https://a/b", "checksum": "123"}]}, "checksum = '123'"),
        ({"train": [{"url": "https://a/b", "format": "pdf"}]}, "Write one of text, sgm, ted"),
        *(
            ({"train": [{"url": "https://a/b", "notes": [note]}]}, "a list of file names")
            for note in ("..", "a/..", "a/", "", ".0", "a\\b", "a\nb", "a:b")
        ),
        ({"../train": [{"url": "https://a/b"}]}, "can't be part of a file name"),
    ],
)
def test_a_table_with_a_mistake(
    change: Mapping[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = {
        "title": "A toy",
        "languages": ["en-de"],
        "licence": "CC0",
        "train": [{"url": "https://a/{language}"}],
    }
    toy = {key: value for key, value in (toy | change).items() if value is not None}
    (tmp_path / "table.toml").write_text(tomli_w.dumps({"toy": toy}))
    sentence = refused(capsys, "fetch", "--table", tmp_path / "table.toml")
    assert reason in sentence and "table.toml" in sentence


def test_names_that_are_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean multi30k?" in refused(capsys, "fetch", "multi30")
    assert "has no en-it. Choose one of en-de" in refused(capsys, "fetch", "multi30k:en-it")
    assert "doesn't name a corpus and its languages" in refused(capsys, "fetch", "tatoeba")
    assert "no.toml does not exist" in refused(capsys, "fetch", "--table", tmp_path / "no.toml")
    part = {"url": "https://a.b/{language}", "checksum": dict.fromkeys(("en", "de"), "")}
    toy = {"title": "A toy", "languages": "any", "licence": "CC0", "train": [part]}
    (tmp_path / "table.toml").write_text(tomli_w.dumps({"toy": toy}))
    call = "fetch", "toy:en-fr", "--table", tmp_path / "table.toml", "--out", tmp_path / "out"
    assert "toy has no text for en-fr" in refused(capsys, *call)
    (tmp_path / "table.toml").write_text("a = ")
    assert "not valid TOML" in refused(capsys, "fetch", "--table", tmp_path / "table.toml")


odd_values = st.sampled_from(
    [
        0,
        -1,
        1.5,
        True,
        "",
        "x",
        "{",
        "{}",
        "{source.x}",
        "{0}",
        "{language}",
        "https://a/b",
        "https://[",
        [],
        ["en-de"],
        ["x", 1],
        {},
        {"en": 1},
    ]
)


@given(
    facts=st.dictionaries(st.sampled_from([*ENTRY_KEYS, "train", "test"]), odd_values, max_size=2),
    fields=st.dictionaries(st.sampled_from(PART_KEYS), odd_values, max_size=3),
)
def test_every_mistake_of_a_table_is_reported(
    facts: dict[str, Any], fields: dict[str, Any]
) -> None:
    toy = {"title": "A toy", "languages": ["en-de"], "licence": "CC0"}
    toy |= {"train": [{"url": "https://a/{language}"} | fields]} | facts
    with contextlib.suppress(UserError):
        entry, request = find(read_table(tomli_w.dumps({"toy": toy}), "table.toml"), "toy:en-de")
        choose(entry, request)


def test_the_table_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs/guides/corpora.md").read_text(encoding="utf-8")
    text = page.split("```toml")[1].split("```")[0].replace("sha256:…", f"sha256:{'0' * 64}")
    corpus = choose(*find(read_table(text, "corpora.md"), "manuals:en-fr"))
    assert {split: len(parts) for split, parts in corpus.splits.items()} == {"train": 2, "test": 1}
    assert corpus.downloads()[2].url == "https://intranet.example/2026.fr.gz"


def test_the_table_that_comes_with_transduce() -> None:
    entries = read_table(
        (files("transduce.wings.corpora.fetch") / "corpora.toml").read_text(encoding="utf-8"),
        "corpora.toml",
    )
    named = [
        (f"{name}:{'-'.join(pair)}", pair)
        for name, entry in entries.items()
        for pair in entry.pairs
    ]
    assert len(named) == 9
    for text, pair in [
        *named,
        ("tatoeba:en-de", ("en", "de")),
        ("opus:Books/v1:pt_BR-en", ("pt_BR", "en")),
    ]:
        corpus = choose(*find(entries, text))
        assert corpus.languages == pair and corpus.facts["licence"] and corpus.facts["cite"]
        assert all(
            each.url.startswith("https://") and "{" not in each.url for each in corpus.downloads()
        )
    wmt = choose(*find(entries, "wmt14-en-de"))
    members = [part.source.member for part in wmt.splits["train"]]
    assert members == [
        "training/europarl-v7.de-en.en",
        "commoncrawl.de-en.en",
        "training/news-commentary-v9.de-en.en",
    ]
    assert (
        wmt.facts["recipe"] == "wmt14-en-de-base"
        and not choose(*find(entries, "wmt14-en-de:de-en")).facts["recipe"]
    )
    (books,) = choose(*find(entries, "opus:Books/v1:en-de")).downloads()
    assert books.url == "https://object.pouta.csc.fi/OPUS-Books/v1/moses/de-en.txt.zip"


def test_progress_shows_how_much_is_left() -> None:
    line = download.transfer_line("a.tgz", 30_000_000, 90_000_000, 2e6)
    assert line == "30.0 of 90.0 MB  0:00:30 left  2.0 MB/s  a.tgz"
    assert download.transfer_line("a.tgz", 30_000_000, 0, 2e6) == "30.0 MB  2.0 MB/s  a.tgz"

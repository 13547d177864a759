"""Tests of transduce/wings/documents/archive.py, with all formats that are archives."""

import io
import re
import shutil
import struct
import subprocess
import zipfile
from pathlib import Path
from xml.parsers import expat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from office_files import OFFICE_FILES, WORD_BODY, archive, docx, epub, members, read, translated
from transduce.system.errors import UserError
from transduce.wings.documents.archive import MAX_MEMBERS, SMALL_BYTES, Archive

MAKERS = {"docx": 5, "odt": 4, "pptx": 5, "epub": 5, "odp": 1}


def test_each_format_has_files_of_several_programs() -> None:
    for suffix, count in MAKERS.items():
        assert sum(name.endswith(f".{suffix}") for name in OFFICE_FILES) >= count


@pytest.mark.parametrize("name", OFFICE_FILES)
def test_an_untranslated_archive_stays_the_same_bytes(name: str) -> None:
    content = OFFICE_FILES[name]
    document = read(name, content)
    assert document.texts and len(document.texts) == len(document.kinds) == len(document.lines)
    assert document.write(document.texts) == content
    assert document.write([""] * len(document.texts)) == content
    with pytest.raises(ValueError):
        document.write(["one more", *document.texts])


@pytest.mark.parametrize("name", OFFICE_FILES)
def test_only_members_with_texts_change(name: str) -> None:
    """All others keep their compressed bytes, and all keep their order, names, times, fields and comments."""
    content = OFFICE_FILES[name]
    document = read(name, content)
    written = document.write(translated(document, str.swapcase))
    assert written != content
    before, after = (zipfile.ZipFile(io.BytesIO(each)) for each in (content, written))
    assert after.testzip() is None
    assert before.comment == after.comment
    old, new = members(content), members(written)
    for one, other in zip(before.infolist(), after.infolist(), strict=True):
        for field in ("filename", "date_time", "comment", "compress_type", "external_attr"):
            assert getattr(one, field) == getattr(other, field)
        assert one.extra == other.extra
        if old[one.filename] == new[one.filename]:
            assert _packed(content, one) == _packed(written, other)
        else:
            expat.ParserCreate().Parse(re.sub(rb"&nbsp;", b"", new[one.filename]), True)


def _packed(content: bytes, info: zipfile.ZipInfo) -> bytes:
    """A member from its local header to its compressed content."""
    lengths = struct.unpack_from("<2H", content, info.header_offset + 26)
    return content[info.header_offset : info.header_offset + 30 + sum(lengths) + info.compress_size]


@pytest.mark.parametrize("name", OFFICE_FILES)
def test_a_translated_archive_has_the_translations(name: str) -> None:
    document = read(name, OFFICE_FILES[name])
    translations = translated(document, str.swapcase)
    again = read(name, document.write(translations))
    assert len(again.texts) == len(translations)
    for text, translation in zip(again.texts, translations, strict=True):
        # An attribute inside a text is translated, too; and tags may enclose a blank more.
        assert _words(text) == _words(translation)


def _words(text: str) -> str:
    return re.sub(r"<[^>]*>|\s", "", text)


@given(st.data())
def test_any_changed_members_leave_the_others(data: st.DataObject) -> None:
    content = docx(WORD_BODY)
    names = list(members(content))
    changed = data.draw(st.dictionaries(st.sampled_from(names), st.binary(max_size=50)))
    written = Archive(content, "a.docx").write(changed)
    assert members(written) == members(content) | changed
    assert list(members(written)) == names


def test_sizes_behind_a_member_and_in_64_bits_are_written_before_it() -> None:
    content = io.BytesIO()

    class Stream(io.RawIOBase):  # can't seek, so that zipfile writes the sizes behind the content
        def writable(self) -> bool:
            return True

        def write(self, data: bytes) -> int:  # type: ignore[override]
            return content.write(data)

    with zipfile.ZipFile(Stream(), "w", zipfile.ZIP_DEFLATED) as packed:  # type: ignore[arg-type]
        for name in ("one", "two", "three"):
            with packed.open(name, "w", force_zip64=True) as member:
                member.write(name.encode() * 9)
    written = Archive(content.getvalue(), "a.docx").write({"two": b"another"})
    assert members(written) == {"one": b"one" * 9, "two": b"another", "three": b"three" * 9}


def test_names_in_an_unknown_encoding_stay_the_same_bytes() -> None:
    """Many programs write names in UTF-8 without saying so, and find the members by these names."""
    content = archive({"word/document.xml": "<x/>", "word/media/XX.png": "a", "word/ö": ""})
    content = content.replace(b"XX", "ä".encode())
    written = Archive(content, "a.docx").write({"word/document.xml": b"<y/>"})
    directory = written[written.index(b"PK\1\2") :]
    assert "media/ä.png".encode() in directory and "word/ö".encode() in directory
    before, after = (zipfile.ZipFile(io.BytesIO(each)).infolist() for each in (content, written))
    assert [each.flag_bits for each in before] == [each.flag_bits for each in after]
    assert [each.filename for each in before] == [each.filename for each in after]


def test_refused_archives() -> None:
    whole = OFFICE_FILES["page.docx"]
    compound = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    encrypted = bytearray(archive({"word/document.xml": "<x/>"}))
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\1\2") + 8] |= 1
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as packed, pytest.warns(UserWarning):
        packed.writestr("word/document.xml", "<x/>")
        packed.writestr("word/document.xml", "<y/>")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", bytes(SMALL_BYTES + 1))
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as packed:
        for i in range(MAX_MEMBERS + 1):
            packed.writestr(str(i), b"")
    liar = bytearray(archive({"a": "", "word/document.xml": f"<x>{'a' * 5000}</x>"}))
    at = liar.rindex(b"PK\1\2") + 24
    liar[at : at + 4] = struct.pack("<I", 100)  # less than the member expands to
    package = "EncryptedPackage".encode("utf-16-le")
    expected = {
        "a.docx is protected by a password. Open": [compound + package, bytes(encrypted)],
        "a file of Microsoft Office 97 to 2003, such as a .doc file, with another": [compound],
        "a.docx is damaged: File is not a zip file. Open it": [
            b"PK\3\4",
            whole[:-300],
            whole[: len(whole) // 2],
        ],
        "a.docx has another format than its suffix says: it is no ZIP archive": [
            b"",
            b"text",
            b"{\\rtf1}",
        ],
        "says: it is a PDF file": [b"%PDF-1.7"],
        "two files in the archive have the same name": [twice.getvalue()],
        "would expand to 10,000,001 bytes": [bomb.getvalue()],
        "is an archive of 20,001 files": [many.getvalue()],
        "a.docx: word/document.xml is damaged: Bad CRC-32": [bytes(liar)],
        "is not a text of Microsoft Word: the archive has no word/": [
            OFFICE_FILES["page.odt"],
            OFFICE_FILES["plain.pptx"],
        ],
        "leads outside the archive": [
            archive({name: "", "word/document.xml": "<x/>"})
            for name in ("../a", "/a", "a/../../b", "..\\a", "c:a", "\\a")
        ],
        "a.docx: word/document.xml:2: not well-formed XML": [docx("<w:p>"), docx("&x;")],
        "word/document.xml:1: the document type declares": [
            archive(
                {
                    "word/document.xml": '<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
                }
            )
        ],
        "more than 200 nested elements": [docx("<w:p>" + "<a>" * 300 + "</a>" * 300 + "</w:p>")],
    }
    for said, contents in expected.items():
        for content in contents:
            with pytest.raises(UserError, match=re.escape(said)):
                read("a.docx", content)


def test_a_damaged_member_is_refused() -> None:
    content = bytearray(OFFICE_FILES["page.docx"])
    info = zipfile.ZipFile(io.BytesIO(content)).getinfo("word/document.xml")
    for place in range(40, info.compress_size, 50):
        damaged = bytearray(content)
        damaged[info.header_offset + 50 + place] ^= 255
        with pytest.raises(UserError, match=r"page.docx: word/document.xml is damaged"):
            read("page.docx", bytes(damaged))


def test_other_protected_files_are_refused() -> None:
    manifest = "<m><encryption-data/></m>"
    with pytest.raises(UserError, match="protected by a password"):
        read("a.odt", archive({"content.xml": "x", "META-INF/manifest.xml": manifest}))
    protected = '<e><CipherReference URI="{}"/></e>'
    fonts = epub("<p>A dog</p>", more={"META-INF/encryption.xml": protected.format("font.otf")})
    assert "A dog" in read("a.epub", fonts).texts
    page = epub("<p>A dog</p>", more={"META-INF/encryption.xml": protected.format("page0.xhtml")})
    with pytest.raises(UserError, match="protected against copies"):
        read("a.epub", page)
    bomb = epub("", more={"a.xhtml": "<!DOCTYPE html [<!ENTITY a 'b'>]><p>&a;</p>"})
    with pytest.raises(UserError, match=r"a.epub: a.xhtml declares entities"):
        read("a.epub", bomb)


def test_a_link_has_no_span_in_it_if_it_had_none() -> None:
    """Impress drops the text of spans in links."""
    document = read("slides.odp", OFFICE_FILES["slides.odp"])
    written = read("slides.odp", document.write(translated(document, str.upper)))
    assert re.search(r"<text:a [^>]*>THE PAGE</text:a>", written.documents["content.xml"].content)


def test_blanks_in_opendocument() -> None:
    """Readers ignore a blank at the beginning and behind another, but not those that do not break."""
    names = "xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0'"
    text = '<text:s text:c="3"/>10\xa0km \n<text:s/>far'
    content = archive({"content.xml": f"<text:p {names}>{text}</text:p>"})
    document = read("a.odt", content)
    assert document.texts == ["   10\xa0km  far"]
    written = members(document.write(["   10\xa0km  weit"]))["content.xml"].decode()
    assert '><text:s text:c="3"/>10\xa0km <text:s text:c="1"/>weit<' in written


def test_headers_and_footers_of_slides() -> None:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "presentation", "text")
    )
    footer = '<presentation:footer-decl presentation:name="f">{}</presentation:footer-decl>'
    slides = "<office:x {}>{}<text:p>{}</text:p></office:x>"
    content = archive({"content.xml": slides.format(names, footer.format("Our plan"), "A dog")})
    document = read("a.odp", content)
    assert document.texts == ["Our plan", "A dog"]
    written = members(document.write(["Unser  Plan", "Ein Hund"]))["content.xml"].decode()
    footer = footer.format('Unser <text:s text:c="1"/>Plan')
    assert written == slides.format(names, footer, "Ein Hund")


def test_readings_above_characters_are_left_out_of_opendocument() -> None:
    names = "xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0'"
    word = "<text:ruby><text:ruby-base>漢字</text:ruby-base><text:ruby-text>かんじ</text:ruby-text></text:ruby>"
    content = archive({"content.xml": f"<text:p {names}>これは{word}です。</text:p>"})
    document = read("a.odt", content)
    assert document.texts == ["これは漢字です。"]
    assert b"ruby" not in members(document.write(["This is kanji."]))["content.xml"]


def test_labels_of_a_book_have_no_elements() -> None:
    document = read("a.epub", epub("<p>A dog</p>"))
    written = members(document.write(["Zwei  Hunde"] * len(document.texts)))
    assert "<text>Zwei  Hunde</text>" in written["toc.ncx"].decode()
    assert "<dc:title>Zwei  Hunde</dc:title>" in written["book.opf"].decode()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason="needs LibreOffice")
@pytest.mark.parametrize("name", [name for name in OFFICE_FILES if not name.endswith("epub")])
def test_libreoffice_opens_a_translated_document(name: str, tmp_path: Path) -> None:
    """Every word of the translation is in the text that LibreOffice reads, or in its export of slides."""
    document = read(name, OFFICE_FILES[name])
    (tmp_path / name).write_bytes(document.write(translated(document, str.upper)))
    suffix = "odp" if name.endswith("pptx") else "odt" if name.endswith(("docx", "odt")) else "pptx"
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless"]
    place = tmp_path / "out"
    subprocess.run(
        [*command, "--convert-to", suffix, "--outdir", place, tmp_path / name], check=True
    )
    opened = read(f"a.{suffix}", (place / f"{Path(name).stem}.{suffix}").read_bytes())
    expected = {*re.findall(r"[A-Z]{2,}", " ".join(map(_words, translated(document, str.upper))))}
    words = re.findall(r"[A-Z]{2,}", " ".join(map(_words, opened.texts)))
    assert expected <= {*words}  # a .docx file has the text of a box twice

"""Spreadsheets: of LibreOffice, of openpyxl, and by hand."""

import io
import re
import zipfile

import openpyxl
import pytest

import office_files
from transduce.system.errors import UserError
from transduce.text.formats import read_document
from transduce.text.pairs import read_pairs

TEXTS = ["Hello world.", "A dog runs."]
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def workbook(sheet: str, shared: str = "", prefix: str = "") -> bytes:
    """The members of an .xlsx file that are read."""
    colon = prefix and f"{prefix}:"
    name = f"xmlns{colon and ':' + prefix}"
    return office_files.archive(
        {
            "xl/workbook.xml": "<workbook/>",
            "xl/sharedStrings.xml": f'<{colon}sst {name}="{MAIN}">{shared}</{colon}sst>',
            "xl/worksheets/sheet1.xml": f'<{colon}worksheet {name}="{MAIN}">{sheet}</{colon}worksheet>',
        }
    )


def inline(name: str, text: str) -> str:
    return f'<c r="{name}" t="inlineStr"><is><t>{text}</t></is></c>'


def values(content: bytes) -> list[list[object]]:
    """The cells of the first sheet, as openpyxl reads them."""
    rows = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True)
    return [list(row) for row in rows]


def of_openpyxl() -> bytes:
    """A workbook with a formula, a style, a number and a second sheet without languages."""
    book = openpyxl.Workbook()
    for row in (["en", "id", "de"], [TEXTS[0], 1, None], ["=A2", 2, "fertig"], [TEXTS[1], 3, None]):
        book.active.append(row)
    book.active["C2"].font = openpyxl.styles.Font(bold=True)
    book.create_sheet("other").append(["a", "b"])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def of_libreoffice() -> bytes:
    return (office_files.FOLDER / "table.xlsx").read_bytes()


@pytest.mark.parametrize("make", [of_openpyxl, of_libreoffice])
def test_only_missing_translations_are_written(make) -> None:
    content = make()
    document = read_document(content, "a.xlsx", "en", "de")
    assert document.texts == TEXTS
    assert document.write(["", ""]) == content
    translations = ["Hallo <Welt> & co.\x01", "Ein\nHund "]
    written = document.write(translations)
    before, after = values(content), values(written)
    changed = [
        new
        for row, others in zip(before, after, strict=True)
        for old, new in zip(row, others, strict=True)
        if old != new
    ]
    assert changed == ["Hallo <Welt> & co.", "Ein\nHund "]
    assert read_document(written, "a.xlsx", "en", "de").texts == []
    again = read_document(written, "a.xlsx", "en", "de", redo=True)
    assert {*TEXTS} <= {*again.texts}


def test_styles_and_formulas_stay() -> None:
    written = read_document(of_openpyxl(), "a.xlsx", "en", "de").write(["x", "y"])
    sheet = openpyxl.load_workbook(io.BytesIO(written)).worksheets[0]
    assert (sheet["C2"].value, sheet["C2"].font.bold) == ("x", True)
    assert (sheet["A3"].value, sheet["C3"].value) == ("=A2", "fertig")


def test_both_columns_are_a_corpus(tmp_path) -> None:
    file = tmp_path / "a.xlsx"
    file.write_bytes(read_document(of_libreoffice(), "a.xlsx", "en", "de").write(["x", "y"]))
    pairs = [(pair.source, pair.target) for pair in read_pairs([str(file)], ("en", "de"))]
    assert pairs[0] == (TEXTS[0], "x") and pairs[2] == (TEXTS[1], "y") and len(pairs) == 3
    with pytest.raises(UserError, match="no column is named 'fr'"):
        list(read_pairs([str(file)], ("en", "fr")))


def test_runs_of_a_cell_are_one_text_and_readings_are_left_out() -> None:
    runs = "<r><t>課</t></r><r><rPr/><t>きく &amp;</t></r><rPh><t>カ</t></rPh>"
    shared = f"<si><t>ja</t></si><si><t>de</t></si><si>{runs}</si>"
    sheet = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="AB1" t="s"><v>1</v></c></row>'
        '<row r="2"><c r="A2" t="s"><v>2</v></c><c r="AC2"><v>1</v></c></row>'
    )
    content = workbook(sheet, shared)
    document = read_document(content, "a.xlsx", "ja", "de")
    assert document.texts == ["課きく &"]
    [cell] = re.findall(r'<c r="AB2".*?</c>(?=<c r="AC2")', sheet_of(document.write(["x"])))
    assert 't="inlineStr"' in cell


def sheet_of(content: bytes) -> str:
    return zipfile.ZipFile(io.BytesIO(content)).read("xl/worksheets/sheet1.xml").decode()


def test_elements_keep_their_prefix() -> None:
    rows = "".join(
        f'<row r="{i}">{inline(f"A{i}", one)}{inline(f"B{i}", other)}</row>'
        for i, (one, other) in enumerate([("en", "de"), ("A dog.", "")], 1)
    )
    prefixed = re.sub(r"<(/?)(?=\w)", r"<\1x:", rows)
    document = read_document(workbook(prefixed, prefix="x"), "a.xlsx", "en", "de")
    assert document.texts == ["A dog."]
    expected = (
        '<x:c r="B2" t="inlineStr"><x:is><x:t xml:space="preserve">y</x:t></x:is></x:c></x:row>'
    )
    assert expected in sheet_of(document.write(["y"]))


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        ('<row r="1"><c r="A1" t="s"><v>7</v></c></row>', "A1 has no text"),
        ('<row r="1"><c r="A1" t="s"><v>²</v></c></row>', "A1 has no text"),
        (
            f'<row r="1">{inline("A1", "en")}</row>',
            "no column is named 'de'. The first row has: 'en'",
        ),
        ("<sheetData/>", "no column is named 'en'"),
    ],
)
def test_what_is_missing_is_said(sheet: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        read_document(workbook(sheet), "a.xlsx", "en", "de")

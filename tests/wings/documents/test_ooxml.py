"""Tests of transduce/wings/documents/ooxml.py and paragraphs.py."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run as run_command
from models import make_model
from office_files import (
    CHANGE,
    FORMULA,
    MARK,
    OFFICE_FILES,
    PPTX,
    WORD_BODY,
    archive,
    docx,
    field,
    members,
    paragraph,
    pptx,
    read,
    run,
    slide_run,
    translated,
)

BOLD = "<w:b/>"


def texts(*paragraphs: str) -> list[str]:
    return read("a.docx", docx("".join(paragraphs))).texts


def body(content: bytes) -> str:
    return members(content)["word/document.xml"].decode()


def test_texts_of_a_paragraph() -> None:
    assert texts(WORD_BODY) == [
        "One dog <r1>runs fast<x2/></r1> now.",
        "See <r1>this page</r1>, page <x2/>.",
        "Because <x1/> holds<x2/>.",
        "Before<x1/> and after.",
        "In a <r1>box</r1>",
        "It is quite good.",
        '<r1><r2>A name</r2></r1> stands &amp; here<br n="3"/>non\u2011stop<br n="4"/>last',
    ]


def test_the_most_frequent_style_needs_no_tags() -> None:
    assert texts(paragraph(run("A ", BOLD), run("long bold text", BOLD), run(" end"))) == [
        "A long bold text<r1> end</r1>"
    ]
    link = f'<w:hyperlink r:id="r9">{run("the page", "<w:u/>")}</w:hyperlink>'
    assert texts(paragraph(run("See "), link)) == ["See <r1>the page</r1>"]


def test_a_translation_becomes_runs() -> None:
    document = read("a.docx", docx(paragraph(run("One "), run("two", BOLD), MARK, run(" three"))))
    assert document.texts == ["One <r1>two<x2/></r1> three"]
    written = body(document.write(["<r1>Zwei</r1> &lt; drei<x2/> eins"]))
    start, end = re.findall("<w:bookmark[^>]*>", MARK)
    assert (
        "<w:p><w:pPr><w:jc w:val='left'/></w:pPr>"
        '<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">Zwei</w:t></w:r>'
        '<w:r><w:t xml:space="preserve"> &lt; drei</w:t></w:r>'
        f'{start}{end}<w:r><w:t xml:space="preserve"> eins</w:t></w:r></w:p>'
    ) in written


@given(st.text(alphabet='<>/rx0123 ab&;n="', max_size=60))
def test_any_translation_keeps_each_element_once(translation: str) -> None:
    content = docx(paragraph(run("One "), run("two", BOLD), MARK, FORMULA, run(" three")))
    written = body(read("a.docx", content).write([translation]))
    for kept in ("<w:bookmarkStart", "<w:bookmarkEnd", "<m:oMath>"):
        assert written.count(kept) == 1
    read("a.docx", docx(written.partition("<w:body>")[2].partition("</w:body>")[0]))


def test_tracked_changes_are_accepted_and_said() -> None:
    document = read("a.docx", docx(WORD_BODY))
    [note] = document.notes
    assert "a.docx has tracked changes" in note
    assert read("a.docx", docx(paragraph(run("Ins del")))).notes == ()
    written = body(document.write(translated(document, str.upper)))
    assert "<w:del " not in written and "<w:ins " not in written and "Gone." not in written
    assert "IT IS QUITE GOOD." in written


def test_an_inserted_link_is_one_element() -> None:
    link = f'<w:ins {CHANGE}><w:hyperlink r:id="r9">{run("Here")}</w:hyperlink>{run(" it")}</w:ins>'
    document = read("a.docx", docx(paragraph(link, run(" is."))))
    assert document.texts == ["<r1>Here</r1> it is."]
    written = body(document.write(["<r1>Hier</r1> ist es."]))
    assert "w:ins" not in written and written.count("<w:hyperlink") == 1


def test_fields_stay_except_for_links() -> None:
    nested = field(f" IF {field('PAGE', '1')} ", "yes")
    content = docx(paragraph(run("It is "), nested, run(" so")))
    document = read("a.docx", content)
    assert document.texts == ["It is <x1/> so"]
    written = body(document.write(["Es ist <x1/> so"]))
    assert [written.count(f'"{part}"') for part in ("begin", "separate", "end")] == [2, 2, 2]
    # A table of contents is a field of several paragraphs.
    first = field(' TOC \\o "1-3" ', "One").rpartition("<w:r>")[0]
    last = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    assert texts(paragraph(first), paragraph(run("Two"), last)) == ["One", "Two"]
    assert texts(paragraph(field(' TOC \\o "1-3" ', "One"))) == ["One"]
    assert texts(paragraph(run("Name: "), field(" FORMTEXT ", "your name"))) == [
        "Name: <r1>your name</r1>"
    ]
    simple = '<w:fldSimple w:instr=" {} ">{}</w:fldSimple>'
    linked = simple.format("HYPERLINK x", run("this page"))
    assert texts(
        paragraph(run("See "), linked, simple.format("PAGE", run("two"))),
    ) == ["See <r1>this page</r1>"]


def test_readings_above_characters_are_left_out() -> None:
    word = f"<w:r><w:ruby><w:rubyPr/><w:rt>{run('かんじ')}</w:rt><w:rubyBase>{run('漢字')}</w:rubyBase></w:ruby></w:r>"
    document = read("a.docx", docx(paragraph(run("これは"), word, run("です。"))))
    assert document.texts == ["これは漢字です。"]
    written = body(document.write(["This is kanji."]))
    assert written.count("<w:t") == 1 and "ruby" not in written


def test_a_link_may_begin_inside_an_element_of_its_field() -> None:
    whole = field(' HYPERLINK "x" ', "page")
    at = whole.index('<w:r><w:fldChar w:fldCharType="separate"')
    end = whole.rindex("<w:r>")
    tagged = f"{whole[:at]}<w:smartTag>{whole[at:end]}</w:smartTag>{whole[end:]}"
    document = read("a.docx", docx(paragraph(run("See "), tagged, run(" now"))))
    assert document.texts == ["See <x1/> now"]
    assert tagged.replace(' w:rsidR="00A1"', "") in body(document.write(["<x1/> jetzt"]))


def test_a_pair_without_words_stays_itself() -> None:
    """The element of a box to tick would get another word of the translation."""
    box = f"<w:sdt><w:sdtPr/><w:sdtContent>{run(chr(0x2610))}</w:sdtContent></w:sdt>"
    assert texts(paragraph(box, run("I agree."))) == ["I agree."]
    document = read("a.docx", docx(paragraph(run("Tick "), box, run(" here."))))
    assert document.texts == ["Tick <x1/> here."]
    assert box.replace(' w:rsidR="00A1"', "") in body(document.write(["Hier <x1/>"]))


def test_signs_between_words_take_no_word() -> None:
    """A comma needs no style, and a symbol needs its font: tags around them would take the next word."""
    assert texts(paragraph(run("One"), run(", ", BOLD), run("two dogs "), run("run", BOLD))) == [
        "One, two dogs <r1>run</r1>"
    ]
    font = "<w:rFonts w:ascii='Wingdings'/>"
    document = read("a.docx", docx(paragraph(run("I am "), run("\uf04a", font), run(" happy"))))
    assert document.texts == ["I am <x1/> happy"]
    written = body(document.write(["Froh <x1/> bin ich"]))
    assert f'<w:rPr>{font}</w:rPr><w:t xml:space="preserve">\uf04a</w:t>' in written


def test_a_bookmark_stays_around_its_words() -> None:
    """Its marks must not change places: a reference would lose its text."""
    start, end = re.findall("<w:bookmark[^>]*>", MARK)
    marked = paragraph(run("See "), start, run("big dogs"), end, run(" now"))
    document = read("a.docx", docx(marked))
    assert document.texts == ["See <r1>big dogs</r1> now"]
    written = body(document.write(["Nun <r1>große Hunde</r1>"]))
    bookmark = re.search(f"{start}(.*){end}", written)
    assert bookmark and re.sub("<[^>]*>", "", bookmark[1]) == "große Hunde"
    assert f"{start}{end}" in body(document.write(["Nun"]))
    crossing = start + run("one ") + start.replace("1", "2") + run("two ") + end
    assert texts(paragraph(run("So "), crossing, run("six"), end.replace("1", "2"))) == [
        "So <r1>one <x2/>two </r1>six"
    ]


def test_blanks_that_do_not_break_stay() -> None:
    without = "<w:r><w:t>{}</w:t></w:r>"
    runs = map(without.format, (" 10 ", "\xa0", "km", "\u3000far"))
    assert texts(paragraph(*runs)) == ["10\xa0km\u3000far"]


def test_tabs_of_slides_stay() -> None:
    document = read("a.pptx", pptx(slide_run("Name\tof the dog", " b='1'")))
    assert document.texts == ['Name<br n="1"/>of the dog']
    assert read("a.pptx", pptx(slide_run("A&#9;dog"))).texts == ['A<br n="1"/>dog']
    written = members(document.write(['Name<br n="1"/>des Hundes']))["ppt/slides/slide1.xml"]
    runs = re.findall(r"<a:r>.*?</a:r>", written.decode())
    assert [re.sub("<[^>]*>", "", each) for each in runs] == ["Name", "\t", "des Hundes"]
    assert all("b='1'" in each for each in runs)


def test_numbers_of_footnotes_are_no_words() -> None:
    raised = '<w:vertAlign w:val="superscript"/>'
    assert texts(paragraph(run("A dog"), run("2", raised), run(", too"))) == ["A dog<x1/>, too"]
    assert texts(paragraph(run("H"), run("2", raised), run("O"))) == ["H<r1>2</r1>O"]
    assert texts(paragraph(run("The 1"), run("st", raised), run(" dog"))) == [
        "The 1<r1>st</r1> dog"
    ]


def test_text_boxes_change_with_or_without_the_text_around() -> None:
    document = read("a.docx", docx(WORD_BODY))
    outer = document.texts.index("Before<x1/> and after.")
    for changed in ({outer: "Vor<x1/> und nach."}, {outer + 1: "In der <r1>Kiste</r1>"}):
        for more in ({}, {outer: "Nach<x1/> ihm"}):
            translations = [""] * len(document.texts)
            for i, text in {**more, **changed}.items():
                translations[i] = text
            written = read("a.docx", document.write(translations)).texts
            for i, text in {**more, **changed}.items():
                assert written[i] == text


def test_other_prefixes_and_cdata() -> None:
    content = docx(paragraph(run("One dog")))
    other = body(content).replace("w:", "x:").replace("xmlns:w", "xmlns:x")
    other = other.replace("One dog", "<![CDATA[One & dog]]>")
    assert "xmlns:x=" in other
    document = read("a.docx", archive({"word/document.xml": other}))
    assert document.texts == ["One &amp; dog"]
    assert '<x:t xml:space="preserve">Ein Hund</x:t></x:r></x:p>' in body(
        document.write(["Ein Hund"])
    )


def test_slides_are_in_order_and_their_styles_merge() -> None:
    many = read("a.pptx", PPTX["many.pptx"]).texts
    assert many == [f"Slide {chr(64 + i)}{chr(96 + i)}" for i in range(1, 12)]
    assert read("a.pptx", PPTX["styles.pptx"]).texts == ["<r1>A </r1>bold word<r2> here.</r2>"]
    document = read("a.pptx", pptx(slide_run("Dog ") + slide_run("two", " b='1'")))
    written = members(document.write(["<r1>Zwei</r1> &amp;"]))["ppt/slides/slide1.xml"].decode()
    assert (
        "<a:r><a:rPr b='1'/><a:t>Zwei</a:t></a:r><a:r><a:t> &amp;</a:t></a:r><a:endParaRPr"
        in written
    )


def test_comments_and_masters_stay() -> None:
    for name in ("changes.docx", "changes.odt", "layout.odt", "slides.odp"):
        shown = " ".join(read(name, OFFICE_FILES[name]).texts)
        assert "omment stays" not in shown and "lick to edit" not in shown


@pytest.mark.parametrize("name", ["layout.docx", "layout.odt"])
def test_headers_notes_and_boxes_are_translated(name: str) -> None:
    words = [re.sub("<[^>]*>", "", text) for text in read(name, OFFICE_FILES[name]).texts]
    for text in (
        "A header over every page",
        "What the note says.",
        "The text of a box",
        "The end says this.",
    ):
        assert text in words


def test_the_command_says_that_changes_were_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_model(tmp_path / "model", {})
    file = tmp_path / "a.docx"
    file.write_bytes(docx(paragraph(run("ka "), f"<w:ins {CHANGE}>{run('ki')}</w:ins>")))
    output = tmp_path / "b.docx"
    status, _, said = run_command(capsys, "translate", model, "--input", file, "--output", output)
    assert status == 0 and f"{file} has tracked changes" in said and "1 text translated" in said
    assert "w:ins" not in body(output.read_bytes())

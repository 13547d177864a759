"""Office documents: made by LibreOffice and pandoc (wings/documents/office/make.sh), and by hand."""

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from transduce.decoding.plan import Plan
from transduce.decoding.types import Translation
from transduce.text.formats import Document, read_document

FOLDER = Path(__file__).parent / "wings/documents/office"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PARTS = "application/vnd.openxmlformats-officedocument"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def archive(members: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive whose members have comments, extra fields and different methods."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.comment = b"The comment of the archive"
        for i, (name, member) in enumerate(members.items()):
            info = zipfile.ZipInfo(name, (2001, 2, 3, 4, 5, 2 * i))
            info.compress_type = zipfile.ZIP_STORED if i % 3 == 0 else zipfile.ZIP_DEFLATED
            info.comment = f"member {i}".encode()
            info.extra = b"\xfe\xca\x02\x00ab"
            packed.writestr(info, member)
    return content.getvalue()


def _relations(targets: Mapping[str, str]) -> str:
    its = (
        f'<Relationship Id="r{i}" Type="{RELATIONS}/{kind}" Target="{target}"/>'
        for i, (target, kind) in enumerate(targets.items(), 1)
    )
    return f'{XML}<Relationships xmlns="{PACKAGE}/relationships">{"".join(its)}</Relationships>'


def _types(parts: Mapping[str, str]) -> str:
    its = (
        f'<Override PartName="/{name}" ContentType="{PARTS}.{kind}+xml"/>'
        for name, kind in parts.items()
    )
    default = "".join(
        f'<Default Extension="{suffix}" ContentType="application/{kind}"/>'
        for suffix, kind in (
            ("rels", "vnd.openxmlformats-package.relationships+xml"),
            ("xml", "xml"),
        )
    )
    return f'{XML}<Types xmlns="{PACKAGE}/content-types">{default}{"".join(its)}</Types>'


def docx(body: str) -> bytes:
    """A .docx file with the paragraphs of `body`."""
    namespaces = f'xmlns:w="{WORD}" xmlns:m="{MATH}" xmlns:r="{RELATIONS}"'
    return archive(
        {
            "[Content_Types].xml": _types({"word/document.xml": "wordprocessingml.document.main"}),
            "_rels/.rels": _relations({"word/document.xml": "officeDocument"}),
            "word/document.xml": f"{XML}<w:document {namespaces}><w:body>{body}</w:body></w:document>",
            "word/media/image.bin": bytes(range(256)),
        }
    )


def paragraph(*runs: str) -> str:
    return f"<w:p><w:pPr><w:jc w:val='left'/></w:pPr>{''.join(runs)}</w:p>"


def run(text: str, properties: str = "") -> str:
    style = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r w:rsidR="00A1">{style}<w:t xml:space="preserve">{text}</w:t></w:r>'


def field(instruction: str, result: str) -> str:
    parts = (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
        f'<w:r><w:instrText xml:space="preserve">{instruction}</w:instrText></w:r>',
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r>',
        run(result, "<w:u w:val='single'/>"),
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
    )
    return "".join(parts)


MARK = '<w:bookmarkStart w:id="1" w:name="m"/><w:bookmarkEnd w:id="1"/>'
FORMULA = "<m:oMath><m:r><m:t>a+b</m:t></m:r></m:oMath>"
BOX = (
    "<w:r><w:pict><v:shape xmlns:v='urn:schemas-microsoft-com:vml'><v:textbox><w:txbxContent>"
    f"{paragraph(run('In a '), run('box', '<w:b/>'))}</w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
)
CHANGE = 'w:id="7" w:author="A" w:date="2026-01-01T00:00:00Z"'
WORD_BODY = "".join(
    [
        paragraph(
            run("One ", "<w:lang w:val='en-US'/>"),
            '<w:proofErr w:type="spellStart"/>',
            run("dog ", "<w:lang w:val='en-GB'/><w:noProof/>"),
            run("runs", "<w:b/>"),
            run(" fast", "<w:b/><w:lang w:val='en-GB'/>"),
            MARK,
            run(" now."),
        ),
        paragraph(
            run("See "),
            field(' HYPERLINK "https://example.org" ', "this page"),
            run(", page "),
            field(" PAGE ", "7"),
            run("."),
        ),
        paragraph(
            run("Because "),
            FORMULA,
            run(" holds"),
            run("1", '<w:vertAlign w:val="superscript"/>'),
            run("."),
        ),
        paragraph(run("Before"), BOX, run(" and after.")),
        paragraph(
            run("It is "),
            f"<w:del {CHANGE}><w:r><w:delText>very </w:delText></w:r></w:del>",
            f"<w:ins {CHANGE}>{run('quite ')}</w:ins>",
            run("good."),
        ),
        paragraph(f"<w:del {CHANGE}><w:r><w:delText>Gone.</w:delText></w:r></w:del>"),
        paragraph(
            f"<w:sdt><w:sdtPr><w:alias w:val='n'/></w:sdtPr><w:sdtContent>{run('A name')}</w:sdtContent></w:sdt>",
            run(" stands &amp; here"),
            "<w:r><w:tab/><w:t>non</w:t><w:noBreakHyphen/><w:t>stop</w:t><w:br/></w:r>",
            run("last"),
        ),
        paragraph(run("12.50")),
    ]
)
SLIDE = (
    "<p:sp><p:nvSpPr><p:cNvPr id='{0}' name='s{0}'/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr>"
    "<a:xfrm><a:off x='0' y='0'/><a:ext cx='4000000' cy='2000000'/></a:xfrm>"
    "<a:prstGeom prst='rect'><a:avLst/></a:prstGeom></p:spPr>"
    "<p:txBody><a:bodyPr/><a:p>{1}<a:endParaRPr lang='en-US'/></a:p></p:txBody></p:sp>"
)


COLOUR_NAMES = "bg1 tx1 bg2 tx2 accent1 accent2 accent3 accent4 accent5 accent6 hlink folHlink"
COLOURS = {"bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2"}


def slide_run(text: str, properties: str = "") -> str:
    return f'<a:r><a:rPr lang="en-US" dirty="0"{properties}/><a:t>{text}</a:t></a:r>'


def pptx(*slides: str) -> bytes:
    """A .pptx file with one paragraph on each slide."""
    presentation = "http://schemas.openxmlformats.org/presentationml/2006/main"
    names = f'xmlns:a="{DRAWING}" xmlns:r="{RELATIONS}" xmlns:p="{presentation}"'
    tree = (
        "<p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id='1' name=''/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>{}"
        "</p:spTree></p:cSld>"
    )
    colours = " ".join(f"{each}='{COLOURS.get(each, each)}'" for each in COLOUR_NAMES.split())
    numbers = range(1, 1 + len(slides))
    numbered = "".join(f'<p:sldId id="{255 + i}" r:id="r{1 + i}"/>' for i in numbers)
    main = "presentationml.presentation.main"
    parts = {f"ppt/slides/slide{i}.xml": "presentationml.slide" for i in numbers}
    members = {
        "[Content_Types].xml": _types(
            {
                "ppt/presentation.xml": main,
                "ppt/slideMasters/m.xml": "presentationml.slideMaster",
                "ppt/slideLayouts/l.xml": "presentationml.slideLayout",
                **parts,
            }
        ),
        "_rels/.rels": _relations({"ppt/presentation.xml": "officeDocument"}),
        "ppt/presentation.xml": (
            f"{XML}<p:presentation {names}>"
            '<p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="r1"/></p:sldMasterIdLst>'
            f"<p:sldIdLst>{numbered}</p:sldIdLst>"
            '<p:sldSz cx="9144000" cy="6858000"/><p:notesSz cx="6858000" cy="9144000"/></p:presentation>'
        ),
        "ppt/_rels/presentation.xml.rels": _relations(
            {
                "slideMasters/m.xml": "slideMaster",
                **{f"slides/slide{i}.xml": "slide" for i in numbers},
            }
        ),
        "ppt/slideMasters/m.xml": (
            f"{XML}<p:sldMaster {names}>{tree.format('')}<p:clrMap {colours}/>"
            '<p:sldLayoutIdLst><p:sldLayoutId id="2147483649" r:id="r1"/></p:sldLayoutIdLst></p:sldMaster>'
        ),
        "ppt/slideMasters/_rels/m.xml.rels": _relations({"../slideLayouts/l.xml": "slideLayout"}),
        "ppt/slideLayouts/l.xml": f"{XML}<p:sldLayout {names}>{tree.format('')}</p:sldLayout>",
        "ppt/slideLayouts/_rels/l.xml.rels": _relations({"../slideMasters/m.xml": "slideMaster"}),
    }
    for i, slide in zip(numbers, slides, strict=True):
        members[f"ppt/slides/slide{i}.xml"] = (
            f"{XML}<p:sld {names}>{tree.format(SLIDE.format(2, slide))}</p:sld>"
        )
        members[f"ppt/slides/_rels/slide{i}.xml.rels"] = _relations(
            {"../slideLayouts/l.xml": "slideLayout"}
        )
    return archive(members)


PPTX = {
    "plain.pptx": pptx(slide_run("A dog runs."), slide_run("Two men sit.")),
    "styles.pptx": pptx(
        slide_run("A ")
        + slide_run("bold", " b='1'")
        + slide_run(" word", " b='1' err='1'")
        + slide_run(" here.")
    ),
    "breaks.pptx": pptx(
        slide_run("The first line")
        + "<a:br><a:rPr lang='en-US'/></a:br>"
        + slide_run("and the second")
    ),
    "fields.pptx": pptx(
        slide_run("Page ")
        + "<a:fld id='{B0000000-0000-0000-0000-000000000001}' type='slidenum'><a:rPr lang='en-US'/><a:t>1</a:t></a:fld>"
        + slide_run(" of the talk")
    ),
    "many.pptx": pptx(*(slide_run(f"Slide {chr(64 + i)}{chr(96 + i)}") for i in range(1, 12))),
}
CONTAINER = (
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PAGE = (
    '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en">'
    "<head><title>{0}</title></head><body>{1}</body></html>"
)


def epub(*pages: str, language: str = "en-US", more: Mapping[str, str] = {}) -> bytes:
    """An EPUB 2 book."""
    names = [f"page{i}.xhtml" for i in range(len(pages))]
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in names
    )
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "book.opf": (
                '<package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="i"><metadata '
                'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The book</dc:title>'
                '<dc:identifier id="i">b</dc:identifier>'
                f"<dc:language>{language}</dc:language></metadata><manifest>{items}"
                '<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest><spine toc="n">'
                + "".join(f'<itemref idref="{name}"/>' for name in names)
                + "</spine></package>"
            ),
            "toc.ncx": (
                '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1">'
                "<head/><docTitle><text>The book</text></docTitle>"
                '<navMap><navPoint id="p"><navLabel><text>Chapter one</text></navLabel>'
                '<content src="page0.xhtml"/></navPoint></navMap></ncx>'
            ),
            **{name: PAGE.format("A page", page) for name, page in zip(names, pages, strict=True)},
            **more,
        }
    )


EPUB = {
    "plain.epub": epub("<p>A dog runs.</p>"),
    "two.epub": epub("<h1>One</h1><p>A <b>bold</b> word.</p>", "<p>Two<br/>lines</p>"),
    "kept.epub": epub("<p>Call <code>f(x)</code>.</p><pre>code</pre><p>12</p>", language="fr"),
}
OFFICE_FILES = {
    **{
        path.name: path.read_bytes()
        for path in sorted(FOLDER.iterdir())
        if path.suffix in (".docx", ".odt", ".odp", ".epub")
    },
    "hand.docx": docx(WORD_BODY),
    **PPTX,
    **EPUB,
}


def read(name: str, content: bytes) -> Document:
    return read_document(content, name, "en", "de")


def translated(document: Document, translate: Callable[[str], str]) -> list[str]:
    """The texts of a document, translated sentence by sentence."""
    plan = Plan(document.texts, "en", kinds=document.kinds)
    sentences = [Translation(translate(sentence), 0.0, ()) for sentence in plan.sentences]
    return [each.text for each in plan.assemble(sentences)]


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}

"""Documents of each format, and functions that read and write them."""

from collections.abc import Callable, Sequence

from transduce.decoding.plan import Plan
from transduce.decoding.types import Translation
from transduce.text.formats import read_document
from transduce.wings.documents.document import Document

PO = r"""# A comment. äöü
msgid ""
msgstr ""
"Language: de\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: a.py:1
msgid "Open"
msgstr "Öffnen"

#. for the menu
msgctxt "menu"
msgid "Close \"it\"\n"
msgstr ""

#, fuzzy, python-format
msgid "Fuzzy %s"
msgstr "Unscharf %s"

#, python-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid ""
"A long message that goes on "
"over two lines."
msgstr ""

#~ msgid "Obsolete"
#~ msgstr "Veraltet"
"""


XLIFF1 = """<?xml version="1.0" encoding="utf-8"?>
<!-- a comment -->
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
  <file source-language="en" target-language="de" datatype="plaintext" original="a">
    <body>
      <trans-unit id="1"><source>Open <g id="1">the &amp; file</g></source><target>Datei öffnen</target></trans-unit>
      <trans-unit id="2">
        <source xml:lang="en">Close <x id="a"/></source>
      </trans-unit>
      <trans-unit id="3"><source>Empty</source><target state="new"/></trans-unit>
      <trans-unit id="4" translate="no"><source>Not this</source></trans-unit>
      <group translate="no"><trans-unit id="5"><source>Nor this</source></trans-unit></group>
      <trans-unit id="6"><source><![CDATA[With <b>tags</b>]]></source>
        <alt-trans><target>An alternative</target></alt-trans></trans-unit>
      <trans-unit id="7"><source>  </source></trans-unit>
    </body>
  </file>
</xliff>
"""


XLIFF2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en-US" trgLang="de">
 <file id="f"><unit id="u"><segment id="s"><source>One
      line <pc id="1">more</pc></source></segment>
   <ignorable><source> </source></ignorable>
   <segment><source>Two</source><target>Zwei</target></segment></unit></file>
</xliff>
"""


SRT = """1
00:00:01,000 --> 00:00:02,500
<i>A first line
and its end.</i>

2
00:00:03,000 --> 00:00:04,000
- Hello.
- Yes?
"""


VTT = """WEBVTT

NOTE no text

intro
00:01.000 --> 00:02.000 align:start
Hello there.
"""


def read(name: str, text: str, *, redo: bool = False) -> Document:
    return read_document(text.encode(), name, "en", "de", redo=redo)


def written(document: Document, translate: Callable[[str], str]) -> str:
    return document.write([translate(text) for text in document.texts]).decode()


PLAIN_CDATA = XLIFF1.replace("With <b>tags</b>", "Save & close")


def by(translate: Callable[[str], str], sentences: Sequence[str]) -> list[Translation]:
    return [Translation(translate(sentence), -1.0, (sentence,)) for sentence in sentences]


def translated(text: str, translate: Callable[[str], str], **options: object) -> Translation:
    plan = Plan([text], "en", **options)  # type: ignore[arg-type]
    return plan.assemble(by(translate, plan.sentences))[0]

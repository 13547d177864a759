"""Tests of transduce/wings/terms/tbx.py."""

import pytest

from transduce.decoding.types import Term
from transduce.system.errors import UserError
from transduce.wings.terms.glossary import read_glossary

BASIC = """<?xml version="1.0"?><!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en"><text><body>
<termEntry id="1"><descrip type="subjectField">pets</descrip>
 <langSet xml:lang="en-US"><tig><term>dog</term></tig><tig><term>hound</term></tig></langSet>
 <langSet xml:lang="de"><ntig><termGrp><term>der <hi>große</hi>
   Hund</term></termGrp></ntig></langSet></termEntry>
<termEntry id="2"><langSet xml:lang="en"><tig><term>cat</term></tig></langSet></termEntry>
<termEntry id="3"><langSet xml:lang="de"><tig><term>Kuh &amp; Kalb</term></tig></langSet>
 <langSet xml:lang="en"><tig><term>cow</term></tig></langSet></termEntry>
</body></text></martif>"""
CORE = """<tbx style="dca" type="TBX-Core" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"><text><body>
<conceptEntry id="1"><langSec xml:lang="en"><termSec><term>dog</term></termSec></langSec>
<langSec xml:lang="de"><termSec><term></term></termSec><termSec><term>Hund</term></termSec></langSec></conceptEntry>
<conceptEntry id="2"><langSec xml:lang="en"><termSec><term>cow</term></termSec></langSec>
<langSec xml:lang="de"><termSec><term>Kuh</term></termSec></langSec></conceptEntry>
</body></text></tbx>"""


def test_the_first_terms_of_both_languages_are_read(tmp_path):
    file = tmp_path / "terms.TBX"
    file.write_text(BASIC, encoding="utf-8")
    expected = [Term("dog", "der große Hund"), Term("cow", "Kuh & Kalb")]
    assert read_glossary(str(file), ("en", "de")) == expected
    assert read_glossary(str(file), ("de", "en_GB")) == [Term(*term[::-1]) for term in expected]
    file.write_text(CORE, encoding="utf-8")
    assert read_glossary(str(file), ("en", "de")) == [Term("cow", "Kuh")]


def test_faults_are_named(tmp_path):
    file = tmp_path / "terms.tbx"
    file.write_text(BASIC, encoding="utf-8")
    with pytest.raises(UserError, match=r"terms\.tbx has no terms"):
        read_glossary(str(file), ("en", "fr"))
    file.write_text("<martif>\n<text>", encoding="utf-8")
    with pytest.raises(UserError, match=r"terms\.tbx:2: not well-formed XML"):
        read_glossary(str(file), ("en", "de"))
    with pytest.raises(UserError, match=r"none\.tbx can't be read: No such file"):
        read_glossary(str(tmp_path / "none.tbx"), ("en", "de"))
    bomb = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    file.write_text(f'<!DOCTYPE x [<!ENTITY a0 "ha">{bomb}]><x>&a11;</x>', encoding="utf-8")
    with pytest.raises(UserError, match="not well-formed XML"):
        read_glossary(str(file), ("en", "de"))

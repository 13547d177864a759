"""Tests of transduce/text/encoding_errors.py."""

from transduce.text.encoding_errors import UNDECODED, readable


def test_each_undecoded_byte_becomes_a_replacement_character():
    for byte in range(256):
        text = b"a%cb" % byte
        shown = readable(text.decode("utf-8", "surrogateescape"))
        assert shown == (text.decode() if byte < 128 else "a\ufffdb"), byte
    assert readable("a\udc80\udcffb") == "a\ufffd\ufffdb"
    others = "\ud800\udbff\udc00\udc7f\udd00\udfff\ufffd"  # halves of pairs are no bytes
    assert readable(others) == others and not UNDECODED.search(others)

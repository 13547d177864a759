"""Recognises files that are not UTF-8 text, and says how to convert them."""

import re

SAMPLE_BYTES, MIN_ZEROS = 1024, 16
OFFICE = "Save the text as .txt, or as .html to keep the formatting."
SPREADSHEETS = "Save it as .xlsx or .csv, with the languages of its columns in the first row."
TOOLS = "Export it from your translation tool as .xlf or .tmx."
UNREADABLE = dict.fromkeys(
    (".doc", ".docx", ".odt", ".pdf", ".rtf", ".epub", ".ppt", ".pptx", ".odp"), OFFICE
)
UNREADABLE |= dict.fromkeys(
    (".sdlxliff", ".mqxliff", ".mqxlz", ".mxliff", ".txlf", ".ttx", ".txml", ".wsxz"), TOOLS
)
UNREADABLE |= dict.fromkeys((".ods", ".xls"), SPREADSHEETS)
QT_LINGUIST = re.compile(r"\ufeff?<(?:\?xml|!DOCTYPE TS)")  # the beginning of a .ts file

LOOKS_LIKE = {  # first bytes of files that are often mistaken for UTF-8 text -> kind of file, advice
    b"\x1f\x8b": ("gzip data", "Decompress it, or add .gz to the name of its file."),
    b"\xfd7zXZ": ("xz data", "Decompress it, or add .xz to the name of its file."),
    b"BZh": ("bzip2 data", "Decompress it, or add .bz2 to the name of its file."),
    b"\x28\xb5\x2f\xfd": ("Zstandard data", "Decompress it, or add .zst to the name of its file."),
    b"PK\x03\x04": (
        "a ZIP archive, such as a .docx or .odt file",
        "Save the text as .txt or .html.",
    ),
    b"%PDF": ("a PDF file", "Save the text as .txt or .html."),
    b"\xff\xfe": ("UTF-16", "Convert the file with `iconv -f UTF-16 -t UTF-8`."),
    b"\xfe\xff": ("UTF-16", "Convert the file with `iconv -f UTF-16 -t UTF-8`."),
}


def kind_of(block: bytes) -> tuple[str, str] | None:
    """The kind of a file that is not UTF-8, by its first bytes, and how to convert it."""
    for beginning, kind in LOOKS_LIKE.items():
        if block.startswith(beginning):
            return kind
    return None


def utf_16(block: bytes) -> str:
    """The UTF-16 encoding of a file that begins with Latin letters without a byte order mark, or ""."""
    high = block[:SAMPLE_BYTES:2]
    low = block[1:SAMPLE_BYTES:2]
    for codec, zeros, letters in (("UTF-16BE", high, low), ("UTF-16LE", low, high)):
        if zeros.count(0) > max(MIN_ZEROS, len(zeros) / 2) and letters.count(0) < len(letters) / 10:
            return codec
    return ""

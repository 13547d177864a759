"""ZIP archives that hold documents, such as .docx and .epub files.

Writing an archive replaces the content of some members. All other members stay the same bytes: their compressed
content, order, times, extra fields and comments.
"""

import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import islice

from transduce.system.errors import UserError
from transduce.text.file_kinds import kind_of
from transduce.text.formats import TextKind
from transduce.wings.documents.document import Document
from transduce.wings.documents.xml import decode_xml
from transduce.wings.documents.xml_tree import check_xml

MAX_ARCHIVE_BYTES = 1_000_000_000
MAX_MEMBERS = 20_000
MAX_EXPANDED_BYTES = 100_000_000  # of all members that are read
MAX_EXPANSION_RATIO = 200  # limit of the ratio of uncompressed to compressed bytes
SMALL_BYTES = 10_000_000  # members up to this size may have any ratio
READABLE_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # Microsoft's older container of files
ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")  # in a compound file: an encrypted .docx
OPEN_WITHOUT_PASSWORD = "Open it in its program, and save a copy without a password."
SAVE_AGAIN = "Open it in its program, and save it again."
ENCRYPTED_FLAG = 1
UTF8_FLAG = 0x800
LOCAL_SIGNATURE = b"PK\3\4"
ERRORS = (  # of zipfile, for damaged archives
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    struct.error,
    ValueError,
)


class Archive:
    """A ZIP archive in memory."""

    def __init__(self, content: bytes, name: str) -> None:
        """Read the directory of an archive.

        Raises UserError if the file is damaged, encrypted or no archive, if names of its members are repeated or lead
        outside the archive, or if there are too many members.
        """
        self.content = content
        self.name = name
        if len(content) > MAX_ARCHIVE_BYTES:
            raise UserError(f"{name} has more than {MAX_ARCHIVE_BYTES:,} bytes.", "Split it.")
        if content.startswith(COMPOUND_FILE):
            raise self._compound_file()
        if not content.startswith(b"PK"):
            kind = kind_of(content)
            is_what = f"it is {kind[0]}" if kind else "it is no ZIP archive"
            raise UserError(
                f"{name} has another format than its suffix says: {is_what}.", SAVE_AGAIN
            )
        try:
            self._zip = zipfile.ZipFile(BytesIO(content))
            self._members = self._zip.infolist()
        except ERRORS as error:
            raise self._damaged(error) from None
        self._check()
        self._left = MAX_EXPANDED_BYTES

    @cached_property
    def names(self) -> list[str]:
        """The names of the members."""
        return [info.filename for info in self._members]

    def read(self, member: str) -> bytes:
        """The content of a member. Raises UserError if the member is damaged or too large."""
        info = self._zip.getinfo(member)
        expanded = info.file_size
        is_bomb = expanded > max(SMALL_BYTES, MAX_EXPANSION_RATIO * info.compress_size)
        if expanded > self._left or is_bomb:
            raise UserError(
                f"{self.name}: {member} would expand to {expanded:,} bytes from {info.compress_size:,}.",
                "Split the document.",
            )
        self._left -= expanded
        try:
            if info.compress_type not in READABLE_METHODS:
                raise zipfile.BadZipFile(f"compression method {info.compress_type} is unknown")
            return self._zip.read(info)  # never more than info.file_size bytes
        except ERRORS as error:
            raise self._damaged(error, member) from None

    def read_xml(self, member: str) -> tuple[str, str, str]:
        """The text of a member, its name in messages, and its codec. Raises UserError if it is no well-formed XML."""
        name = f"{self.name}: {member}"
        text, codec = decode_xml(self.read(member), name)
        check_xml(text, name)
        return text, name, codec

    def matching(self, pattern: re.Pattern[str]) -> list[str]:
        """The names of the members that match a pattern, with numbers in the order of their values."""
        names = filter(pattern.fullmatch, self.names)
        return sorted(
            names, key=lambda name: re.sub(r"\d+", lambda digits: digits[0].zfill(9), name)
        )

    def require(self, beginning: str, what: str) -> None:
        """Raise UserError if no member's name has a beginning, so that the file is something else than `what`."""
        if not any(name.startswith(beginning) for name in self.names):
            raise UserError(
                f"{self.name} is not {what}: the archive has no {beginning}.", SAVE_AGAIN
            )

    def write(self, changed: Mapping[str, bytes]) -> bytes:
        """The archive with new contents of some members."""
        if not changed:
            return self.content
        in_order = sorted(self._members, key=lambda info: info.header_offset)
        ends = [*(info.header_offset for info in in_order[1:]), self._zip.start_dir]
        written = BytesIO()
        with zipfile.ZipFile(written, "w") as made:
            made.comment = self._zip.comment
            written.write(self.content[: in_order[0].header_offset])
            for info, end in zip(in_order, ends, strict=True):
                whole = self.content[info.header_offset : end]
                made.start_dir = written.tell()
                new = copy(info)
                if not info.flag_bits & UTF8_FLAG:
                    new.filename = _NameOfBytes(info.filename)
                if info.filename in changed:
                    made.writestr(new, changed[info.filename])
                    new.external_attr = info.external_attr  # `writestr` has a default for 0
                else:
                    new.header_offset = made.start_dir
                    made.filelist.append(new)
                    made.start_dir += written.write(whole)
            # The directory may have another order than the members.
            order = {name: number for number, name in enumerate(self.names)}
            made.filelist.sort(key=lambda info: order[info.filename])
        return written.getvalue()

    def _check(self) -> None:
        if not self._members or len(self._members) > MAX_MEMBERS:
            raise UserError(
                f"{self.name} is an archive of {len(self._members):,} files.", SAVE_AGAIN
            )
        begins = {info.header_offset for info in self._members}
        if min(len(set(self.names)), len(begins)) < len(self.names):
            raise UserError(
                f"{self.name}: two files in the archive have the same name.", SAVE_AGAIN
            )
        for info in self._members:
            member = info.filename
            if ".." in re.split(r"[/\\]", member) or re.match(r"[/\\]|\w:", member):
                raise UserError(
                    f"{self.name}: the name {member!r} leads outside the archive.",
                    "Do not open this file: it may be an attack.",
                )
            if not self.content.startswith(LOCAL_SIGNATURE, info.header_offset):
                raise self._damaged(zipfile.BadZipFile("its directory is wrong"))
            if info.flag_bits & ENCRYPTED_FLAG:
                raise UserError(f"{self.name} is protected by a password.", OPEN_WITHOUT_PASSWORD)

    def _compound_file(self) -> UserError:
        if ENCRYPTED_PACKAGE in self.content:
            return UserError(f"{self.name} is protected by a password.", OPEN_WITHOUT_PASSWORD)
        return UserError(
            f"{self.name} is a file of Microsoft Office 97 to 2003, such as a .doc file, with another suffix.",
            "Open it in an office program, and save it in the format that its suffix says.",
        )

    def _damaged(self, error: Exception, member: str = "") -> UserError:
        place = f"{self.name}: {member}" if member else self.name
        return UserError(f"{place} is damaged: {error or type(error).__name__}.", SAVE_AGAIN)


class _NameOfBytes(str):
    """A name without a known encoding, which `zipfile` reads as CP437 and would write as UTF-8."""

    def encode(self, *_: object) -> bytes:
        return super().encode("cp437")


@dataclass(frozen=True)
class ArchiveDocument:
    """The documents in an archive, as one document. The number of a text stands for its line."""

    archive: Archive
    documents: Mapping[str, Document]  # by the names of the members
    notes: tuple[str, ...] = ()

    @cached_property
    def texts(self) -> list[str]:
        """The texts to translate."""
        return [text for document in self.documents.values() for text in document.texts]

    @cached_property
    def kinds(self) -> list[TextKind]:
        return [kind for document in self.documents.values() for kind in document.kinds]

    @cached_property
    def lines(self) -> list[int]:
        return list(range(1, 1 + len(self.texts)))

    def write(self, translations: Sequence[str]) -> bytes:
        """The translated archive; an empty translation leaves its text unchanged."""
        if len(translations) != len(self.texts):
            raise ValueError(f"{len(translations)} translations of {len(self.texts)} texts")
        changed = self._changed(translations, complete=False)
        if changed:
            changed = self._changed(translations, complete=True)
        return self.archive.write(changed)

    def _changed(self, translations: Sequence[str], *, complete: bool) -> dict[str, bytes]:
        """The new contents of the members that change."""
        rest = iter(translations)
        changed = dict[str, bytes]()
        for member, document in self.documents.items():
            its = list(islice(rest, len(document.texts)))
            written = document.write(its, complete=complete)
            if written != document.content.encode(document.codec):
                changed[member] = written
        return changed

"""Reads Parquet files, whose columns are chosen as the keys of .jsonl files are."""

from collections.abc import Iterator

from transduce.system.errors import UserError, needing
from transduce.text.formats import CorpusFile, TextPair
from transduce.text.jsonl import pair_keys
from transduce.text.plain import read_pieces
from transduce.wings.tables.records import read_records

NESTED = "translation"  # a column of pairs, as in many data sets of the Hugging Face Hub


def read_parquet(file: CorpusFile) -> Iterator[TextPair]:
    """Read the pair in each row, whose number takes the place of a line number.

    A null is an empty text. Other columns are not read. Raises UserError for a file that is not intact, that is empty
    or that lacks the columns.
    """
    with needing("tables", "Reading Parquet files"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    next(read_pieces(file.path), b"")  # raises the error for a missing file
    try:
        table = ParquetFile(file.path, page_checksum_verification=True)
        names = table.schema_arrow.names
        columns = [NESTED]
        if NESTED not in names:
            columns = [*pair_keys(dict.fromkeys(names, ""), file.languages, file.path)]
        rows = (row for batch in table.iter_batches(columns=columns) for row in batch.to_pylist())
        _, pairs = read_records(rows, file.languages, file.path)
        for pair in pairs:
            yield pair.source, pair.target, pair.origin.line
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise UserError(f"{file.path} is not an intact Parquet file: {reason}.") from None

"""Writes the regular expressions of our texts in JavaScript's syntax, for the page of `transduce export --to web`.

    python tools/write_patterns.py

Run it after a change of a pattern that it imports; tests/tools/test_write_patterns.py says if that was forgotten.
"""

from pathlib import Path

from javascript import to_javascript
from transduce.inline.events import IN_PLAIN_TEXT
from transduce.inline.full_stops import BEHIND, STOP, WORD_PART, patterns_of_roles
from transduce.system.files import to_json
from transduce.tokens.normalization import MEANINGLESS, WIDE_PUNCTUATION, WITH_WIDE_PUNCTUATION
from transduce.wings.export import web

FILE = Path(web.__file__).with_name(web.PATTERNS)


def patterns() -> str:
    """The content of the file."""
    marks, roles = patterns_of_roles()
    return to_json(
        {
            "normalizer": {
                "wideSigns": WIDE_PUNCTUATION,
                "withWideSigns": to_javascript(WITH_WIDE_PUNCTUATION),
                "meaningless": to_javascript(MEANINGLESS),
            },
            "fullStops": {
                "stop": to_javascript(STOP),
                "wordPart": to_javascript(WORD_PART),
                "behind": to_javascript(BEHIND),
                "roles": to_javascript(roles),
                "marks": marks,
            },
            "placeholders": to_javascript(IN_PLAIN_TEXT[False]),
        }
    )


if __name__ == "__main__":
    FILE.write_bytes(patterns().encode())

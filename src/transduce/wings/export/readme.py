"""The sections of an export's README.md: each a Markdown file in `readmes/`, with `$name` for a value."""

from importlib.resources import files
from string import Template


def fill(section: str, **values: object) -> str:
    """A section with its values."""
    text = files(__package__).joinpath("readmes", f"{section}.md").read_text(encoding="utf-8")
    return Template(text).substitute(values)

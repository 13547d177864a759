"""Fills in the Markdown templates in `readmes/` for an export's README.md."""

from importlib.resources import files
from string import Template


def fill(section: str, **values: object) -> str:
    """The Markdown text of a section, with `values` for its placeholders."""
    text = files(__package__).joinpath("readmes", f"{section}.md").read_text(encoding="utf-8")
    return Template(text).substitute(values)

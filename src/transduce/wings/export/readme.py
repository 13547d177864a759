"""Fills in the sections of an export's README.md: Markdown files in `readmes/`, where `$name` stands for a value."""

from importlib.resources import files
from string import Template


def fill(section: str, **values: object) -> str:
    """The Markdown text of a section, with the values filled in."""
    text = files(__package__).joinpath("readmes", f"{section}.md").read_text(encoding="utf-8")
    return Template(text).substitute(values)

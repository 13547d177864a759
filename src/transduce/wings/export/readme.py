"""Fills in the Markdown templates in `readmes/` for an export's README.md."""

from collections.abc import Mapping
from importlib.resources import files
from string import Template


def fill(section: str, **values: object) -> str:
    """The Markdown text of a section, with `values` for its placeholders."""
    text = files(__package__).joinpath("readmes", f"{section}.md").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def about_tags(tags: Mapping[str, int], example: str) -> dict[str, str]:
    """The tag in an example program and the sentence that explains it, for a model of several languages.

    In `example`, {0} is replaced by a tag, and {1} by its id.
    """
    if not tags:
        return {"tag": "", "tags": ""}
    listed = ", ".join(f"`{tag}` (id {number})" for tag, number in tags.items())
    text = f"\nEach source begins with the tag of its target language: {listed}."
    return {"tag": example.format(*next(iter(tags.items()))), "tags": text}

"""The type of positions in a text."""

Span = tuple[int, int]  # begin and end in a text, in code points

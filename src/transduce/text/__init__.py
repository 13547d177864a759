"""Parallel text: readers of formats, cleaning rules, the hold-out, placeholders and sentences."""

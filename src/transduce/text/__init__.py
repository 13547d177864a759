"""Parallel text: readers of formats, cleaning rules and the hold-out."""

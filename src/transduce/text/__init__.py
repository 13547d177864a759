"""Parallel text: readers for file formats, cleaning rules, and the split into training and validation pairs."""

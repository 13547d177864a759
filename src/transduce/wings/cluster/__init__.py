"""Divides the preparation of a corpus or the translation of a file among processes, machines or Ray workers."""

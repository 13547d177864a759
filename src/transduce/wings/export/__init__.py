"""Exports to other formats and imports from them, each compared with the model."""

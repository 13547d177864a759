"""Exports to other formats and imports of Marian models; each result is compared with the original model."""

"""Exports models to other formats, and imports Marian models."""

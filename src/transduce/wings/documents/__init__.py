"""Reads and writes document formats: translates documents, and extracts parallel text from documents."""

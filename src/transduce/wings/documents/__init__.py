"""Translates documents, and extracts parallel text from documents."""

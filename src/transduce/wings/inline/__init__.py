"""Texts of many sentences with tags and placeholders: taken apart before a translation, put together after it."""

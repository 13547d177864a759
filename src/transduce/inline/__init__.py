"""Splits texts into sentences, and transfers their tags and placeholders to the translations."""

"""Constituency parsing by translation, as in section 6.3 of "Attention Is All You Need"."""

"""Constituency parsing (section 6.3 of the paper): linearised trees, a search for well-formed trees, EVALB's scores."""

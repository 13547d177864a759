"""Constituency parsing (section 6.3 of the paper): sentences to trees that are always well-formed."""

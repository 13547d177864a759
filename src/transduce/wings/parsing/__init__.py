"""Constituency parsing (section 6.3 of the paper): trees as symbols, a search that only finds trees, EVALB's scores."""

"""Constituency parsing (section 6.3 of the paper) with linearised trees, a constrained search and EVALB's scores."""

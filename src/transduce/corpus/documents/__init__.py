"""Whole files: what is to be translated in them, and the same bytes around the translations."""

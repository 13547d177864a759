"""Reads the models of other programs, as a beginning for one's own."""

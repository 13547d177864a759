"""Cleans a corpus, splits off validation pairs, learns a vocabulary and encodes the texts."""

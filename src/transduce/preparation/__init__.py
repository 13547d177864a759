"""Prepares a corpus: cleans it, splits off validation pairs, learns the vocabulary and encodes the texts."""

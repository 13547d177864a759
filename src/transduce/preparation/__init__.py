"""From corpus files to a prepared corpus: clean, hold out, learn the vocabulary, encode."""

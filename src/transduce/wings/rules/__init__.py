"""Rules of cleaning beyond emptiness, length and repetition: what `data.rules` and `transduce doctor` check."""

"""`transduce demo`: trains a small English-German model on generated sentences in a few minutes."""

"""`transduce doctor`: checks of a corpus, a model folder or a machine, with fixes."""

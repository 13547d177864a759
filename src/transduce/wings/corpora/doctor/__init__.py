"""`transduce doctor` checks a corpus, a model folder or a machine, and suggests fixes."""

"""transduce: the Transformer, from parallel text to translations."""

__version__ = "0.1.0"

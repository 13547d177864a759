"""Checks the cleaning rules of `data.rules` and `transduce doctor`."""

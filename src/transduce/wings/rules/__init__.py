"""The cleaning rules that `data.rules` may name and `transduce doctor` checks."""

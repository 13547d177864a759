"""The command `transduce demo` trains a small English-German model in a few minutes."""

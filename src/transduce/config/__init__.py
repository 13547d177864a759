"""The options with their types, defaults and values in the paper, and a table of defaults by corpus size."""

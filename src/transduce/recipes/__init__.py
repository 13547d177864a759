"""Recipes that come with transduce, by name."""

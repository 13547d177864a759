"""Additive attention, expert layers, and model families other than the Transformer."""

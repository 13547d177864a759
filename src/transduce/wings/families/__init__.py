"""Additive attention, expert layers and the model families that the paper compares with, imported only when used."""

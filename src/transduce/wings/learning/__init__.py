"""Learns from corrections: new versions of a model, which replace it only if they are better."""

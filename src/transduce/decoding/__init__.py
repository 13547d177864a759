"""Translate texts with trained models, and compute the probabilities of translations."""

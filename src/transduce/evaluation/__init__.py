"""Measure the quality of translations by standard scores, and of models by the perplexity of references."""

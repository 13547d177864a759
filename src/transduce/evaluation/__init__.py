"""Measure the quality of translations by BLEU, chrF and TER, and of models by perplexity."""

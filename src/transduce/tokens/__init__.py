"""Tokenizers, stores of token ids, and the planning of batches. No module here imports torch."""

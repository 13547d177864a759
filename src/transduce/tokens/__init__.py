"""Tokenizers, stores of token ids, and the planning of batches; no module here imports torch."""

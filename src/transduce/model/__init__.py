"""Sequence-to-sequence models that compute logits from token ids."""

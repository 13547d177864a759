"""Sequence-to-sequence models, which compute logits from token ids; independent of text and training."""

"""Sequence-to-sequence models, which compute logits from token ids and know nothing of text or training."""

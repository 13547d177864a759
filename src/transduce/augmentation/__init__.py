"""Changes the training pairs anew in every epoch: their texts, and how words are divided into subwords."""

"""Changes the texts and the subwords of the training pairs anew in every epoch."""

"""Model families that the paper compares with, additive attention and layers of experts; registries name them."""

"""The models that the paper compares with, and layers of experts: each a module that the core's registries name."""

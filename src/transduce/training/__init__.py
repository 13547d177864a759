"""Modules that train a model, from the first start to the finished model folder."""

"""The lab: what researchers need to compare models and to check the paper. `transduce` runs without it."""

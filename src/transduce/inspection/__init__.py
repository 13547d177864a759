"""Drawings of what a training and a model recorded: learning curves, attention maps, the report page."""

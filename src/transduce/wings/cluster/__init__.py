"""Preparing a corpus or translating a file in shards: by several processes or machines, or on Ray."""

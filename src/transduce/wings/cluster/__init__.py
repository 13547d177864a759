"""Many processes and machines: shards of a corpus or a text, merged afterwards, also as Ray tasks."""

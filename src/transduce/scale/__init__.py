"""More than one process, or machine, for one corpus: shards by hand, or on Ray."""

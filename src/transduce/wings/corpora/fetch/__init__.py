"""Known corpora by name: download, verify, unpack."""

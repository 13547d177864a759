"""Known corpora by name: what they are, from where, downloaded, unpacked, as aligned text files."""

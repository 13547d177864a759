"""Files to text: reading parallel corpora, cleaning them, and splitting off what is held out."""

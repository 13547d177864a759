"""Sources that are not text: pictures and recorded speech, as the paper's conclusion plans."""

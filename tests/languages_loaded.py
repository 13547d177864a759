"""Loads py3langid's model, so that processes that are forked later have it."""

import contextlib

from forked import load_languages_once

load_languages_once()
with contextlib.suppress(ImportError):
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

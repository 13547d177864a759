"""Loads py3langid's model, which takes half a second. Processes that are forked later share it."""

import contextlib
import functools

with contextlib.suppress(ImportError):
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    LanguageIdentifier.from_model_file = functools.cache(LanguageIdentifier.from_model_file)
    LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

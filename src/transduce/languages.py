"""What languages are called."""


def language_name(code: str) -> str:
    """In English, of a language given by its code ("de", "pt-BR").

    The code itself where it is none of a language, or Babel, which knows them, is not installed.
    """
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        return code
    try:
        return Locale.parse(code, sep="-").get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code

"""The translation server: LibreTranslate's API and a web page."""

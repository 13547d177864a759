"""The translation server, with LibreTranslate's API and a web page."""

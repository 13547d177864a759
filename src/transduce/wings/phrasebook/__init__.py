"""The phrasebook: generated English sentences with their trees and German translations, as data."""

"""The phrasebook: a data set of generated English sentences with their parse trees and German translations."""

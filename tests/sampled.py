"""Sentences for the tests of drawn subwords."""

ENGLISH = [
    "A dog runs over the grass.",
    "Two men  are sitting.",
    " The child's red ball, 3.5 m away!",
] * 25


GERMAN = [
    "Ein Hund läuft über das Gras.",
    "Zwei Männer sitzen.",
    "Der rote Ball des Kindes, 3,5 m entfernt!",
] * 25

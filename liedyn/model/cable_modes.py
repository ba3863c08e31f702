"""Modes of inextensible cables: the words that contacts have, shown in words that fit a cable."""
# mypy: ignore-errors

from __future__ import annotations

OF_CABLES = {"open": "slack", "leaving": "going slack", "sliding": "taut", "sticking": "held taut"}
"""What a mode of a contact means for a cable, which has no friction."""
EVENTS = {"contact": "becomes taut", "release": "goes slack"}


class Shown(str):
    """A word that programs compare, with others in its representation: equal to "sliding", and shown as taut.

    Examples
    --------
    >>> mode = Shown("sliding", "taut")
    >>> mode, str(mode), mode == "sliding"
    (<taut: 'sliding'>, 'sliding', True)
    """

    def __new__(cls, word, words):
        made = super().__new__(cls, word)
        made.words = words
        return made

    def __getnewargs__(self):
        return str.__str__(self), self.words

    def __repr__(self):
        return f"<{self.words}: {str.__repr__(self)}>"


def as_shown(word):
    """The words of a `Shown`, or any other word itself."""
    return word.words if isinstance(word, Shown) else word


def mode_of_cable(mode):
    """The mode of a one-sided constraint that is a cable."""
    return Shown(mode, OF_CABLES[mode]) if mode in OF_CABLES else mode


def event_of_cable(what, name):
    """The name of the event that a cable becomes taut or slack: "contact rope", "release rope"."""
    word = f"{what} {name}"
    return Shown(word, f"{name} {EVENTS[what]}") if what in EVENTS else word

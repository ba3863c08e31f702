"""Identifiers and texts for generated C: names of a robot are data of users, and reach no program as they are."""
import re
from itertools import count

WORDS = frozenset("""auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main
class new this template namespace public private protected operator""".split())
"""Words of C and C++ that are no names."""
LONGEST = 24
"""Characters of an identifier made of a name: C99 promises to tell 31 from each other between files."""


def identifier(name, otherwise="robot"):
    """A lower-case C identifier that resembles a name."""
    made = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")[:LONGEST].strip("_")
    if not made or made in WORDS:
        made = f"{otherwise}_{made}".rstrip("_")
    return made if made[0].isalpha() else f"{otherwise}_{made}"


def identifiers(names, otherwise):
    """An upper-case identifier for each of several names, all different."""
    made = {}
    for name in names:
        first = identifier(name, otherwise)
        numbered = (f"{first}_{k}" for k in count(1))
        new = first
        while new in made:
            new = next(numbered)
        made[new] = name
    return [new.upper() for new in made]


def comment(name):
    """A name as text for a comment: letters, digits and a few signs stay, bytes of others become %XX."""
    return "".join(chr(b) if re.match(rb"[A-Za-z0-9 _.,:+()-]", bytes([b])) else f"%{b:02X}"
                   for b in name.encode("utf-8", "surrogatepass")[:200])

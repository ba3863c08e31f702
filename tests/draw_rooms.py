"""``python tests/draw_rooms.py``: the picture of the rooms in docs/ARCHITECTURE.md, drawn from the imports.

An arrow leads from a room to one that it imports; arrows that others imply are left out. A room stands one row above
the highest of those that it imports.
"""
from pathlib import Path

from rooms import PACKAGE, ROOMS, imports, modules, room

PICTURE = PACKAGE.parent / "docs" / "_static" / "rooms.svg"
WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 150, 42, 190, 84, 24


def arrows():
    """Rooms by the rooms that import them."""
    found = {each: set() for each in ROOMS}
    for module in modules():
        for source, _ in imports(module):
            a, b = room(module), room(source)
            if a != b and a in found and b in found and ROOMS.index(b) < ROOMS.index(a):
                found[a].add(b)
    return found


def drawn(found):
    """The picture as SVG."""
    below, level = {}, {}
    for each in ROOMS:  # from the bottom up
        below[each] = found[each].union(*(below[other] for other in found[each]))
        level[each] = 1 + max((level[other] for other in found[each]), default=-1)
    rows = [[each for each in ROOMS if level[each] == k] for k in range(max(level.values()) + 1)]
    widest = max(map(len, rows))
    place = {}
    for k, row in enumerate(reversed(rows)):
        for j, each in enumerate(row):
            place[each] = MARGIN + (j + 0.5 * (widest - len(row))) * ACROSS, MARGIN + k * DOWN
    width, height = 2 * MARGIN + (widest - 1) * ACROSS + WIDTH, 2 * MARGIN + (len(rows) - 1) * DOWN + HEIGHT
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" '
             'font-size="16">',
             '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
             'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#555"/></marker></defs>',
             f'<rect width="{width:g}" height="{height:g}" fill="white"/>']
    for each in ROOMS:
        direct = found[each] - set().union(*(below[other] for other in found[each]))
        for other in sorted(direct):
            (x, y), (X, Y) = place[each], place[other]
            lines.append(f'<line x1="{x + WIDTH / 2:g}" y1="{y + HEIGHT:g}" x2="{X + WIDTH / 2:g}" y2="{Y:g}" '
                         'stroke="#555" stroke-width="1.5" marker-end="url(#tip)"/>')
    for each, (x, y) in place.items():
        lines += [f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#E8F1F8" '
                  'stroke="#0072B2"/>',
                  f'<text x="{x + WIDTH / 2:g}" y="{y + HEIGHT / 2 + 6:g}" text-anchor="middle">{each}</text>']
    return "\n".join([*lines, "</svg>\n"])


if __name__ == "__main__":
    Path(PICTURE).write_text(drawn(arrows()))

"""Clusters: sets of constraints that share degrees of freedom and must be solved together, independently of others.

A constraint between two bodies acts on the degrees of freedom on exactly one of the two paths to the ground. Small
loops along a tree share none, and each is a cluster of its own; the legs of a Stewart platform share the platform.
Degrees of freedom of no constraint are the last cluster, which has no rows.
"""
# mypy: ignore-errors
import numpy as np

from liedyn.model.kinds import JOINT_KINDS, LOOP_KINDS

FILLED = 6
"""Memory reserved for L and U, in multiples of the entries of G; chains of four-bars fill less than two."""
LONG, SPARSE_PART = 20, 0.25
"""Smallest size of a cluster, in degrees of freedom, and largest fraction of nonzero entries of G, for which sparse
elimination is faster: measured on chains of four-bar linkages."""


def _path(links, dofs_of, link):
    """Degrees of freedom between a link and the ground."""
    found = set()
    while link >= 0:
        found |= dofs_of[link]
        link = links[link].parent
    return found


def clusters(model, tree, dof_links):
    """Numbers of constraints and of degrees of freedom, cluster by cluster, ascending: a list of (constraints, dofs).

    `dof_links` is the link that each degree of freedom moves. Also returns the number of entries to reserve for L and
    U: zero unless there are long chains of loops, which are eliminated as sparse rows
    (`liedyn.mechanics.constraints.sparse_elimination`), and whose constraints are in the order of elimination.
    """
    links, everything = tree.links, set(range(len(dof_links)))
    dofs_of = [set() for _ in links]
    for j, link in enumerate(dof_links):
        dofs_of[link].add(j)
    names = [joint.name + suffix for joint in tree.joints for suffix in JOINT_KINDS[joint.kind].velocities]
    places = {name: j for j, name in enumerate(names)}
    found, between = [], []  # pairs of disjoint sets; the degrees of freedom of each constraint
    for number, each in enumerate(model.loops + model.constraints):
        if each.parent is not None:
            dofs = _path(links, dofs_of, tree.body_links[each.parent]) ^ _path(
                links, dofs_of, tree.body_links[each.child])
        elif each.stations:
            paths = [_path(links, dofs_of, tree.body_links[body]) for body in each.bodies]
            dofs = set.union(*paths) - set.intersection(*paths)
        elif each.coefficients:
            dofs = {places[name] for name in each.coefficients if name in places}  # unknown names are refused later
        else:
            dofs = everything  # custom rows may depend on all of them
        between.append(dofs)
        together = [other for other in found if other[1] & dofs]
        found = [other for other in found if not other[1] & dofs]
        found.append(({number}.union(*(other[0] for other in together)), dofs.union(*(other[1] for other in together))))
    found = sorted(found, key=lambda other: min(other[0])) + [((), everything.difference(*(dofs for _, dofs in found)))]
    is_long = not model.constraints and any(_is_long(numbers, dofs, between) for numbers, dofs in found)
    groups = [(_in_line(numbers, between) if is_long else sorted(numbers), sorted(dofs)) for numbers, dofs in found]
    return groups, is_long * FILLED * sum(
        len(LOOP_KINDS[each.kind].rows) * len(dofs) for each, dofs in zip(model.loops, between))


def _is_long(numbers, dofs, between):
    """True if sparse elimination is faster, as many loops are coupled, each with few degrees of freedom."""
    entries = sum(len(between[number]) for number in numbers)
    return len(dofs) >= LONG and entries <= SPARSE_PART * len(numbers) * len(dofs)


def _in_line(numbers, between):
    """The numbers of a cluster's constraints, ordered so that those sharing degrees of freedom are neighbours.

    In this order a sparse elimination has little fill-in (Cuthill and McKee 1969).
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    numbers = sorted(numbers)
    at = [(row, dof) for row, number in enumerate(numbers) for dof in between[number]]
    if not at:
        return numbers
    rows, dofs = zip(*at)
    entries = csr_array((np.ones(len(at)), (rows, dofs)))
    return [numbers[row] for row in reverse_cuthill_mckee((entries @ entries.T).tocsr(), symmetric_mode=True)]


def pack_clusters(groups, rows_of, start):
    """Records (rows, dofs, index of the rows' numbers, index of the dofs' numbers), followed by these numbers, int64.

    `groups` are those of `clusters`, `rows_of` has (first, count) of each constraint's rows, `start` is the index of
    the first record.
    """
    records, lists, at = [], [], start + 4 * len(groups)
    for constraints, dofs in groups:
        rows = [row for number in constraints for row in range(rows_of[number][0], sum(rows_of[number]))]
        records += [len(rows), len(dofs), at, at + len(rows)]
        lists += rows + dofs
        at += len(rows) + len(dofs)
    return np.array(records + lists, dtype=np.int64)

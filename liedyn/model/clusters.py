"""Clusters: sets of constraints that share degrees of freedom, and so have to be solved together; others do not.

A constraint between two bodies acts on the degrees of freedom on exactly one of the two paths to the ground. Small
loops along a tree share none, and each is a cluster of its own; the legs of a Stewart platform share the platform.
What belongs to no constraint is the last cluster, which has no rows.
"""
import numpy as np

from liedyn.model.kinds import JOINT_KINDS


def _path(links, dofs_of, link):
    """Degrees of freedom between a link and the ground."""
    found = set()
    while link >= 0:
        found |= dofs_of[link]
        link = links[link].parent
    return found


def clusters(model, tree, dof_links):
    """Numbers of constraints and of degrees of freedom, cluster by cluster, each ascending.

    Parameters
    ----------
    model : Model
    tree : Tree
    dof_links : sequence of int
        The link that each degree of freedom moves.

    Returns
    -------
    list of tuple (constraints, dofs)
    """
    links, everything = tree.links, set(range(len(dof_links)))
    dofs_of = [set() for _ in links]
    for j, link in enumerate(dof_links):
        dofs_of[link].add(j)
    names = [joint.name + suffix for joint in tree.joints for suffix in JOINT_KINDS[joint.kind].velocities]
    places = {name: j for j, name in enumerate(names)}
    found = []  # pairs of sets, disjoint
    for number, each in enumerate(model.loops + model.constraints):
        if each.parent is not None:
            dofs = _path(links, dofs_of, tree.body_links[each.parent]) ^ _path(
                links, dofs_of, tree.body_links[each.child])
        elif each.coefficients:
            dofs = {places[name] for name in each.coefficients if name in places}  # others are refused later
        else:
            dofs = everything  # custom rows may contain them all
        together = [other for other in found if other[1] & dofs]
        found = [other for other in found if not other[1] & dofs]
        found.append(({number}.union(*(other[0] for other in together)), dofs.union(*(other[1] for other in together))))
    found = sorted(found, key=lambda other: min(other[0])) + [((), everything.difference(*(dofs for _, dofs in found)))]
    return [(sorted(numbers), sorted(dofs)) for numbers, dofs in found]


def pack_clusters(groups, rows_of, start):
    """Records (rows, dofs, where the numbers of rows begin, where those of dofs begin), then these numbers.

    Parameters
    ----------
    groups : list of tuple (constraints, dofs)
    rows_of : list of tuple (first, count)
        The rows of each constraint.
    start : int
        Place of the first record.

    Returns
    -------
    ndarray of int64
    """
    records, lists, at = [], [], start + 4 * len(groups)
    for constraints, dofs in groups:
        rows = [row for number in constraints for row in range(rows_of[number][0], sum(rows_of[number]))]
        records += [len(rows), len(dofs), at, at + len(rows)]
        lists += rows + dofs
        at += len(rows) + len(dofs)
    return np.array(records + lists, dtype=np.int64)

"""Which joints of a mechanism make its tree, and which close its loops."""

from liedyn.model import GROUND


def spanning_tree(bodies, joints, canonical):
    """Choose the joints of the tree: for each body the first declared one that holds it, where that reaches the ground.

    Parameters
    ----------
    bodies : list of str
        In the order of declaration.
    joints : list
        Of things with a `parent` and a `child`, names of bodies or of the ground, in the order in which they are to be
        preferred.
    canonical : str
        The body that a part of the mechanism hangs on if all its bodies have a joint that could hold them.

    Returns
    -------
    tree : dict
        By number of a joint in the tree: does it hold its parent, not its child?
    roots : list of str
        Bodies that no joint ties to the ground, one for each part of the mechanism; that with `canonical` comes first.
    """
    first = {}
    for k, joint in enumerate(joints):
        first.setdefault(joint.child, k)
    tree, roots, reached = {}, [], {GROUND}
    _grow(tree, reached, joints, first)
    for body in [canonical, *bodies]:
        if body in reached:
            continue
        part = _joined(body, bodies, joints)
        free = [each for each in part if each not in first]
        root = next((each for each in [canonical, *free] if each in (free or part)), part[0])
        roots.append(root)
        reached.add(root)
        _grow(tree, reached, joints, first)
    return tree, roots


def _grow(tree, reached, joints, first):
    """Add joints to the tree until no joint leads from it to a body that it does not reach."""
    while True:
        forward = [k for k, each in enumerate(joints) if each.parent in reached and each.child not in reached]
        backward = [k for k, each in enumerate(joints) if each.child in reached and each.parent not in reached]
        preferred = [k for k in forward if first[joints[k].child] == k]
        if not forward + backward:
            return
        k = (preferred + forward + backward)[0]
        tree[k] = not forward
        reached.add(joints[k].child if forward else joints[k].parent)


def _joined(body, bodies, joints):
    """The bodies that joints tie to this one, itself among them, in the order of declaration."""
    found, size = {body}, 0
    while len(found) > size:
        size = len(found)
        for joint in joints:
            if joint.parent in found or joint.child in found:
                found |= {joint.parent, joint.child}
    return [each for each in bodies if each in found]

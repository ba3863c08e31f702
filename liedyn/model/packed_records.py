"""Reading the packed model and the workspace inside kernels (layout: `liedyn.model.packed`)."""
from liedyn.machine.compiled.jit import INTEGERS, VECTOR, group, inline
from liedyn.machine.simd.lanes import SCALAR, integer, load, splat, store
from liedyn.model.packed import (
    BODIES_AT, BODY_F, BODY_FLOATS_AT, BODY_I, BODY_LINK, DOFS_AT, DOF_ARMATURE, DOF_DAMPING, DOF_END, DOF_F,
    DOF_FLOATS_AT, DOF_FORK, DOF_I, DOF_LINK, DOF_PREVIOUS, DOF_ROOT, DOF_STIFFNESS, DOF_STRETCH, HEADER, LINK_F,
    LINK_FLOATS_AT, LINK_I, LINK_IQ, LINK_IV, LINK_MASS, LINK_NQ, LINK_NV, LINK_PARENT, LINK_PITCH, LINK_PRIMITIVE,
    LINK_SPREAD, NQ, NV, N_BODIES, N_LINKS, REST_AT, PackedModel,
)

MODEL = group(PackedModel, INTEGERS, VECTOR)
"""Type of the packed model, for `liedyn.machine.compiled.jit.late`."""

# ---- vectors, twists and poses stored as consecutive numbers


@inline
def get3(lane, x, k):
    return (load(lane, x, k), load(lane, x, k + 1), load(lane, x, k + 2))


@inline
def get6(lane, x, k):
    return (get3(lane, x, k), get3(lane, x, k + 3))


@inline
def get_symmetric(lane, x, k):
    return get3(lane, x, k) + get3(lane, x, k + 3)


@inline
def get9(lane, x, k):
    return get3(lane, x, k) + get3(lane, x, k + 3) + get3(lane, x, k + 6)


@inline
def get_pose(lane, x, k):
    return (get9(lane, x, k), get3(lane, x, k + 9))


@inline
def put3(lane, x, k, a):
    store(lane, x, k, a[0])
    store(lane, x, k + 1, a[1])
    store(lane, x, k + 2, a[2])


@inline
def put6(lane, x, k, V):
    put3(lane, x, k, V[0])
    put3(lane, x, k + 3, V[1])


@inline
def put_column(lane, matrix, columns, j, V):
    """Write column j of a matrix of six rows, which are `columns` numbers apart."""
    w, u = V
    for r in range(3):
        store(lane, matrix, r * columns + j, w[r])
        store(lane, matrix, (r + 3) * columns + j, u[r])


@inline
def put_zeros(lane, x, count):
    for k in range(count):
        store(lane, x, k, 0.0)


@inline
def put_symmetric(lane, x, k, S):
    put6(lane, x, k, (S[:3], S[3:]))


@inline
def put9(lane, x, k, R):
    put3(lane, x, k, (R[0], R[1], R[2]))
    put3(lane, x, k + 3, (R[3], R[4], R[5]))
    put3(lane, x, k + 6, (R[6], R[7], R[8]))


@inline
def put_pose(lane, x, k, X):
    put9(lane, x, k, X[0])
    put3(lane, x, k + 9, X[1])


@inline
def accumulate3(lane, x, k, a):
    """x[k:k+3] += a."""
    put3(lane, x, k, (load(lane, x, k) + a[0], load(lane, x, k + 1) + a[1], load(lane, x, k + 2) + a[2]))


@inline
def accumulate6(lane, x, k, F):
    """x[k:k+6] += F."""
    accumulate3(lane, x, k, F[0])
    accumulate3(lane, x, k + 3, F[1])


@inline
def get_inertia(lane, x, k):
    """An inertia (m, h, J) stored as ten numbers."""
    return (load(lane, x, k), get3(lane, x, k + 1), get_symmetric(lane, x, k + 4))


@inline
def as_twist(x, k):
    """Six numbers from the k-th on, as a twist or wrench."""
    return (x[k], x[k + 1], x[k + 2]), (x[k + 3], x[k + 4], x[k + 5])


@inline
def as_inertia(x):
    """Ten numbers as an inertia (m, h, J)."""
    return x[0], (x[1], x[2], x[3]), (x[4], x[5], x[6], x[7], x[8], x[9])


@inline
def put_inertia(lane, x, k, I):
    store(lane, x, k, I[0])
    put3(lane, x, k + 1, I[1])
    put_symmetric(lane, x, k + 4, I[2])


# ---- constants of the model, in every lane


@inline
def number(model, k):
    """One number of the model, as a float."""
    return load(SCALAR, model.floats, k)


@inline
def splat3(lane, a):
    return (splat(lane, a[0]), splat(lane, a[1]), splat(lane, a[2]))


@inline
def zero3(lane):
    return splat3(lane, (0.0, 0.0, 0.0))


@inline
def zero6(lane):
    return (zero3(lane), zero3(lane))


@inline
def constant3(lane, model, k):
    return (splat(lane, number(model, k)), splat(lane, number(model, k + 1)), splat(lane, number(model, k + 2)))


@inline
def constant_pose(lane, model, k):
    """A pose of the model: R by rows, then p."""
    R = constant3(lane, model, k) + constant3(lane, model, k + 3) + constant3(lane, model, k + 6)
    return R, constant3(lane, model, k + 9)


@inline
def minus_gravity(lane, model):
    """The spatial acceleration (0, -g) of the ground that represents gravity (Featherstone 2008, section 5.3)."""
    return (zero3(lane), splat3(lane, (-number(model, 0), -number(model, 1), -number(model, 2))))


# ---- links


@inline
def link_count(model):
    return integer(model.ints, N_LINKS)


@inline
def dof_total(model):
    """nv, all degrees of freedom of the tree."""
    return integer(model.ints, NV)


@inline
def q_total(model):
    """nq, all coordinates of the tree."""
    return integer(model.ints, NQ)


@inline
def parent(model, i):
    return integer(model.ints, HEADER + LINK_I * i + LINK_PARENT)


@inline
def kind(model, i):
    return integer(model.ints, HEADER + LINK_I * i + LINK_PRIMITIVE)


@inline
def first_q(model, i):
    return integer(model.ints, HEADER + LINK_I * i + LINK_IQ)


@inline
def first_dof(model, i):
    return integer(model.ints, HEADER + LINK_I * i + LINK_IV)


@inline
def dof_count(model, i):
    return integer(model.ints, HEADER + LINK_I * i + LINK_NV)


@inline
def q_count(model, i):
    return integer(model.ints, HEADER + LINK_I * i + LINK_NQ)


@inline
def placement(lane, model, i):
    return constant_pose(lane, model, integer(model.ints, LINK_FLOATS_AT) + LINK_F * i)


@inline
def inertia(model, i):
    """(m, h, J) of a link at its own origin, as plain floats."""
    return get_inertia(SCALAR, model.floats, inertia_at(model, i))


@inline
def moments(model, i):
    """(m, h, Q) of a link at its own origin, Q = sum of m r r^T, as plain floats."""
    k = inertia_at(model, i)
    Q = get_symmetric(SCALAR, model.floats, k + LINK_SPREAD - LINK_MASS)
    return number(model, k), get3(SCALAR, model.floats, k + 1), Q


@inline
def inertia_at(model, i):
    """Index in floats of the inertia of link i; those of consecutive links are LINK_F apart."""
    return integer(model.ints, LINK_FLOATS_AT) + LINK_F * i + LINK_MASS


@inline
def dof_link_at(model, j):
    """Index in ints of the number of the link that dof j moves; those of consecutive dofs are DOF_I apart."""
    return integer(model.ints, DOFS_AT) + DOF_I * j + DOF_LINK


@inline
def pitch(model, i):
    """Advance of a helical joint [m/rad]."""
    return number(model, integer(model.ints, LINK_FLOATS_AT) + LINK_F * i + LINK_PITCH)


# ---- degrees of freedom


@inline
def dof_integer(model, j, what):
    return integer(model.ints, integer(model.ints, DOFS_AT) + DOF_I * j + what)


@inline
def dof_link(model, j):
    return integer(model.ints, dof_link_at(model, j))


@inline
def parent_dof(model, j):
    """The next degree of freedom towards the ground, -1 at the ground."""
    return dof_integer(model, j, DOF_PREVIOUS)


@inline
def root_of(model, j):
    """The first degree of freedom on the way from the ground to j: earlier ones do not carry j."""
    return dof_integer(model, j, DOF_ROOT)


@inline
def subtree_end(model, j):
    """The first degree of freedom after j that j does not carry; all between are carried."""
    return dof_integer(model, j, DOF_END)


@inline
def fork_of(model, j):
    """Number of j among the degrees of freedom that carry several directly, else -1."""
    return dof_integer(model, j, DOF_FORK)


@inline
def stretch_of(model, j):
    """First dof of the stretch of j, which begins at the ground or after a fork, and ends in a fork or a leaf."""
    return dof_integer(model, j, DOF_STRETCH)


@inline
def last_of_joint(model, j):
    """The last degree of freedom of the joint that j belongs to."""
    i = dof_link(model, j)
    return first_dof(model, i) + dof_count(model, i) - 1


@inline
def armature(model, j):
    return number(model, integer(model.ints, DOF_FLOATS_AT) + DOF_F * j + DOF_ARMATURE)


@inline
def damping(model, j):
    return number(model, integer(model.ints, DOF_FLOATS_AT) + DOF_F * j + DOF_DAMPING)


@inline
def stiffness(model, j):
    return number(model, integer(model.ints, DOF_FLOATS_AT) + DOF_F * j + DOF_STIFFNESS)


@inline
def rest(model, k):
    """Coordinate k (0 <= k < nq) of the configuration in which the springs are at rest."""
    return number(model, integer(model.ints, REST_AT) + k)


# ---- bodies, as the user declared them


@inline
def body_count(model):
    return integer(model.ints, N_BODIES)


@inline
def body_link(model, b):
    """The link that carries body b, -1 for the ground."""
    return integer(model.ints, integer(model.ints, BODIES_AT) + BODY_I * b + BODY_LINK)


@inline
def body_placement(lane, model, b):
    """The pose of body b in its link, or in the world if it is fixed to the ground."""
    return constant_pose(lane, model, integer(model.ints, BODY_FLOATS_AT) + BODY_F * b)

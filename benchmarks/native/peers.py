"""Open trees and closed loops of the native yardstick: a Pinocchio model handed over as arrays."""
import ctypes
from functools import partial

import numpy as np

from benchmarks.native import MARCH, compiler, library

ALGORITHMS = {
    "rnea": (0,), "crba": (1, 2), "aba": (3, 4), "rnea_derivatives": (5,), "aba_derivatives": (6,),
    "body_jacobian": (7,), "body_jacobian_dot": (8,), "body_jacobian_dq": (9,), "forward_kinematics": (10,),
}
"""Numbers in trees.cpp; two where Pinocchio has a variant in local and one in world coordinates."""
_KINDS = ("Revolute", "Prismatic", "Helical", "Spherical", "FreeFlyer")


def _doubles(x):
    return np.ascontiguousarray(x, dtype=np.float64)


def _integers(x):
    return np.ascontiguousarray(x, dtype=np.int64)


def _pointer(x):
    return x.ctypes.data_as(ctypes.c_void_p)  # keeps the array alive


def _pose(placement):
    return np.concatenate([placement.rotation.ravel(), placement.translation])


def kind_of(joint):
    """Number of a joint's kind, its axis and its pitch."""
    name = joint.shortname().removeprefix("JointModel")
    if name in ("RX", "RY", "RZ", "PX", "PY", "PZ"):
        return "RP".index(name[0]), np.eye(3)["XYZ".index(name[1])], 0.0
    number = next(k for k, start in enumerate(_KINDS) if name.startswith(start))
    own = joint.extract()
    return number, np.array(getattr(own, "axis", np.zeros(3))), getattr(own, "pitch", 0.0)


def _arrays(model):
    """What `model` of model.hpp takes."""
    joints = list(range(1, model.njoints))
    kinds, axes, pitches = zip(*(kind_of(model.joints[i]) for i in joints))
    inertias = [model.inertias[i] for i in joints]
    return [
        _integers([model.parents[i] for i in joints]), _integers(kinds), _doubles(axes), _doubles(pitches),
        _doubles([_pose(model.jointPlacements[i]) for i in joints]),
        _doubles([np.concatenate([[I.mass], I.lever, I.inertia.ravel()]) for I in inertias]),
        _doubles(model.gravity.linear), _doubles(model.armature)]


class Tree:
    """Pinocchio's recursions on one open tree, for states in Pinocchio's own order.

    Parameters
    ----------
    oracle : PinModel
        Of the tests: its model, and its frames of all bodies.

    Raises
    ------
    MissingPeer
        See :func:`benchmarks.native.library`.
    """

    def __init__(self, oracle):
        self._library = library("trees")
        self._library.tree_new.restype = ctypes.c_void_p
        self._library.tree_frame.restype = ctypes.c_int64
        self.model, arrays = oracle.model, _arrays(oracle.model)
        self._tree = ctypes.c_void_p(self._library.tree_new(ctypes.c_int64(len(arrays[0])), *map(_pointer, arrays)))
        self._frames = {}
        for name, number in oracle.frames.items():
            frame = oracle.model.frames[number]
            self._frames[name] = self._library.tree_frame(
                self._tree, ctypes.c_int64(frame.parentJoint), _pointer(_doubles(_pose(frame.placement))))

    def __del__(self):
        if hasattr(self, "_tree"):
            self._library.tree_delete(self._tree)

    def runs(self, algorithm, q, v, x, body=None, threads=1, out=None):
        """The algorithm over all states as functions without arguments: one, or one for each variant.

        Parameters
        ----------
        algorithm : str
            A key of ALGORITHMS.
        q, v, x : ndarray
            Shapes (count, nq), (count, nv), (count, nv), in Pinocchio's order; they live as long as the result.
        body : str, optional
            Of Jacobians.
        threads : int
        out : ndarray, shape (count, ...), optional
            Where the results of all states are stored (matrices column by column); by default they are not.
        """
        q, v, x = map(_doubles, (q, v, x))
        stride = 0 if out is None else out[0].size
        kept = np.empty(1) if out is None else out
        integer = ctypes.c_int64
        rest = (integer(self._frames.get(body, 0)), integer(len(q)), integer(threads),
                *map(_pointer, (q, v, x, kept)), integer(stride))
        made = [partial(self._library.tree_run, self._tree, integer(variant), *rest)
                for variant in ALGORITHMS[algorithm]]
        for run in made:
            run.owner = self  # its memory is needed as long as the function
        return made


class Second:
    """Pinocchio's second derivatives of inverse dynamics of one open tree.

    Parameters
    ----------
    oracle : PinModel

    Raises
    ------
    MissingPeer
        See :func:`benchmarks.native.library`.
    """

    def __init__(self, oracle):
        self._library, arrays = library("second"), _arrays(oracle.model)
        self._library.second_new.restype = ctypes.c_void_p
        self._second = ctypes.c_void_p(
            self._library.second_new(ctypes.c_int64(len(arrays[0])), *map(_pointer, arrays)))

    def __del__(self):
        if hasattr(self, "_second"):
            self._library.second_delete(self._second)

    def run(self, q, v, a):
        """All states (count, n), in Pinocchio's order, as a function without arguments.

        Its attribute `out` receives the tensors of the last state, (4, nv, nv, nv) with the indices reversed.
        """
        given = [_doubles(each) for each in (q, v, a)]
        out = np.zeros((4, *[given[1].shape[1]] * 3))
        made = partial(self._library.second_run, self._second, ctypes.c_int64(len(given[0])),
                       *map(_pointer, (*given, out)))
        made.owner, made.out = (self, given), out
        return made


class Generated:
    """One of Pinocchio's recursions as C that its code generation writes and gcc compiles.

    Parameters
    ----------
    oracle : PinModel
    algorithm : str
        "rnea", "aba", "rnea_derivatives" or "aba_derivatives".
    folder : Path
        For what is generated.

    Raises
    ------
    MissingPeer
        See :func:`benchmarks.native.library`.
    """

    def __init__(self, oracle, algorithm, folder):
        self._library, arrays = library("codegen"), _arrays(oracle.model)
        folder.mkdir(parents=True, exist_ok=True)
        self._library.codegen_new.restype = ctypes.c_void_p
        what = ("rnea", "aba", "rnea_derivatives", "aba_derivatives").index(algorithm)
        texts = (str(folder), compiler("gcc"), MARCH)
        self._function = ctypes.c_void_p(self._library.codegen_new(
            ctypes.c_int64(what), ctypes.c_int64(len(arrays[0])), *map(_pointer, arrays),
            *(ctypes.c_char_p(text.encode()) for text in texts)))

    def __del__(self):
        if hasattr(self, "_function"):
            self._library.codegen_delete(self._function)

    def run(self, q, v, x):
        """The function over all states (count, n), without arguments."""
        given = [_doubles(each) for each in (q, v, x)]
        made = partial(self._library.codegen_run, self._function, ctypes.c_int64(given[0].shape[1]),
                       ctypes.c_int64(len(given[0])), *map(_pointer, given))
        made.owner = self, given
        return made

    def results(self, size):
        """Those of the last state, matrices row by row."""
        out = np.empty(size)
        self._library.codegen_results(self._function, _pointer(out))
        return out


class Machine:
    """Pinocchio's constrained dynamics of one mechanism, for states in Pinocchio's own order.

    Parameters
    ----------
    oracle : PinModel
    closures : sequence of (rows, joint, placement, joint, placement)
        Three rows keep two points together, six two frames.

    Raises
    ------
    MissingPeer
        See :func:`benchmarks.native.library`.
    """

    def __init__(self, oracle, closures):
        self._library = library("loops")
        self._library.machine_new.restype = ctypes.c_void_p
        self._library.machine_run.restype = ctypes.c_int64
        self.model, arrays = oracle.model, _arrays(oracle.model)
        rows = _integers([closure[0] for closure in closures])
        sides = _integers([[closure[1], closure[3]] for closure in closures])
        frames = _doubles([[_pose(closure[2]), _pose(closure[4])] for closure in closures])
        self._machine = ctypes.c_void_p(self._library.machine_new(
            ctypes.c_int64(len(arrays[0])), *map(_pointer, arrays), ctypes.c_int64(len(closures)),
            *map(_pointer, (rows, sides, frames))))

    def __del__(self):
        if hasattr(self, "_machine"):
            self._library.machine_delete(self._machine)

    def run(self, q, v, tau, accuracy, mu, iterations, derivatives=False, a=None, da=None):
        """Constrained accelerations of all states, and their derivatives; returns the most iterations taken.

        Parameters
        ----------
        q, v, tau : ndarray
            Contiguous, shapes (count, nq), (count, nv), (count, nv), in Pinocchio's order.
        accuracy, mu, iterations : float, float, int
            Settings of the proximal solver.
        derivatives : bool
        a : ndarray, shape (count, nv)
            Accelerations.
        da : ndarray, shape (3, nv, nv), optional
            Derivatives with respect to q, v and tau at the last state, transposed.
        """
        return self._library.machine_run(
            self._machine, ctypes.c_int64(derivatives), ctypes.c_int64(len(q)), _pointer(q), _pointer(v), _pointer(tau),
            ctypes.c_double(accuracy), ctypes.c_double(mu), ctypes.c_int64(iterations), _pointer(a),
            ctypes.c_void_p(None) if da is None else _pointer(da))

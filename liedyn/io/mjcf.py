"""Robots from MJCF files, read by MuJoCo's own parser: the extra ``mjcf``.

What MuJoCo compiles is what is taken over: defaults, frames, units and inertias of shapes have been worked out by then.
Its constraints are soft; here they are hard, and the rest of the dynamics is the same.
"""

import contextlib
import re
import warnings
from collections import defaultdict

import numpy as np

from liedyn.errors import LiedynError, ModelError, ModelWarning, cut, errors_at, listed, shown, suggestion
from liedyn.io.files import path_of, read_bytes
from liedyn.io.polynomials import polynomial_rows
from liedyn.model import GROUND, Builder
from liedyn.model.frames import placement
from liedyn.model.kinds import JOINT_KINDS

_KINDS = ("free", "spherical", "prismatic", "revolute")  # in the order of mjtJoint
_SIZES = (6, 3, 1, 1)
_FREE, _BALL, _SLIDE, _HINGE = range(4)


def load_mjcf(path, keyframe=None):
    """Read a robot from an MJCF file of MuJoCo.

    Bodies keep their names and frames, joints their names and coordinates (`ref` included). A body with several joints
    becomes a chain of massless bodies. Equalities between bodies or sites become cut joints, those between joints or
    fixed tendons couplings; motors, and position and velocity servos become actuators, the latter with what they do as
    springs and dampers of their joints. Shapes are taken for inertias only.

    Parameters
    ----------
    path : str or Path
    keyframe : str, optional
        The keyframe that is the home configuration. Default: the one named ``"home"``, else the first one, else the
        configuration in which the file draws the model.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        MuJoCo cannot read the file, a mesh is missing that an inertia depends on, or the file does not describe a
        robot.
    LiedynError
        MuJoCo is not installed.

    Warns
    -----
    ModelWarning
        The file says what the robot will not have, by name.

    Examples
    --------
    >>> robot = load_mjcf("cassie.xml")  # doctest: +SKIP
    """
    path = path_of(path)
    with errors_at(path):
        source = path.name.encode(errors="replace").decode()  # file names may be any bytes
        reader = _Reader(*_compiled(path), source, keyframe)
        reader.add_bodies()
        reader.add_equalities()
        reader.add_actuators()
        robot = reader.robot()
    for what, names in reader.left_out().items():
        warnings.warn(f"{cut(path.name)}: left out {what}: {listed(names)}", ModelWarning, stacklevel=2)
    return robot


def _compiled(path):
    """MuJoCo's module, and the model it makes of a file, without shapes that only show."""
    try:
        import mujoco
    except ImportError:
        raise LiedynError("MJCF files need MuJoCo: pip install 'liedyn[mjcf]'") from None
    head = re.sub(rb"<!--.*?-->|<[?!][^>]*>", b"", read_bytes(path), flags=re.DOTALL).lstrip()
    if head.startswith(b"<robot"):  # which MuJoCo reads, without its loops and friction
        raise ModelError("this is a URDF: give it a name that ends with .urdf, or take load_urdf")
    with _parsing():
        spec = mujoco.MjSpec.from_file(str(path))
    spec.compiler.fusestatic = False
    spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE  # ranges of muscles, which take a simulation
    _leave_shapes(mujoco, spec, path.parent)
    with _parsing():
        return mujoco, spec.compile()


@contextlib.contextmanager
def _parsing():
    """What MuJoCo says of a file, as a ModelError on one line."""
    try:
        yield
    except ValueError as error:
        raise ModelError(f"MuJoCo cannot read it: {' '.join(str(error).split())}") from None


def _leave_shapes(mujoco, spec, folder):
    """Take out all that only shows, and meshes that no inertia needs: their files may be missing."""
    auto, always = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO, mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    needed = set()
    for geom in list(spec.geoms):
        geom.material = ""
        if geom.type not in (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF):
            if not geom.meshname:
                continue
        body, rule = geom.parent, geom.compiler.inertiafromgeom
        if body.name == "world" or rule != always and (body.explicitinertial or rule != auto):
            spec.delete(geom)
        else:
            needed.add(geom.meshname)
    for mesh in list(spec.meshes):
        if mesh.name not in needed:
            spec.delete(mesh)
        elif mesh.file and not (folder / mesh.compiler.meshdir / mesh.file).exists():
            raise ModelError(f"mesh {shown(mesh.name)}: no file {shown(mesh.file)}; an inertia is computed from it: "
                             "give the file, or its body an <inertial>")
    for kind in (spec.skins, spec.hfields, spec.materials, spec.textures):
        for each in list(kind):
            spec.delete(each)


class _Reader:
    """Goes through a model of MuJoCo and declares its parts to a builder."""

    def __init__(self, mujoco, model, source, keyframe):
        self.mujoco, self.model = mujoco, model
        name = model.names[:model.names.index(b"\0")].decode() or source.partition(".")[0]
        self.bodies = [GROUND, *(self.name("body", b) for b in range(1, model.nbody))]
        self.joints = [self.joint_name(j) for j in range(model.njnt)]
        self.builder = Builder(name, gravity=model.opt.gravity, home=self.home(keyframe), source=source)
        self.servos = self.linear_servos()
        self.missing, self.polynomials = defaultdict(list), []

    # ---- names

    def name(self, kind, k):
        """What the file calls something, or its kind and number."""
        found = self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), k)
        return found or f"{kind}{k}"

    def joint_name(self, j):
        """The joint's own name, else its body's, with a number where that has several."""
        body, kind = self.model.jnt_bodyid[j], int(self.mujoco.mjtObj.mjOBJ_JOINT)
        found = self.mujoco.mj_id2name(self.model, kind, j)
        number = f".{j - self.model.body_jntadr[body] + 1}" if self.model.body_jntnum[body] > 1 else ""
        return found or self.bodies[body] + number

    def coordinate(self, j, what):
        """The coordinate of a joint that has one."""
        if self.model.jnt_type[j] not in (_HINGE, _SLIDE):
            raise ModelError(f"{what}: joint {shown(self.joints[j])} has several coordinates")
        return self.joints[j]

    # ---- tree

    def add_bodies(self):
        m = self.model
        for b in range(1, m.nbody):
            R = _pose(quaternion=m.body_iquat[b])[:3, :3]
            self.builder.body(self.bodies[b], mass=m.body_mass[b], com=m.body_ipos[b],
                              inertia=R @ np.diag(m.body_inertia[b]) @ R.T)
            self.add_joints(b, range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]))

    def add_joints(self, b, joints):
        """A chain from the parent to body b: a joint moves about its anchor, which is not the body's origin."""
        m, name, parent = self.model, self.bodies[b], self.bodies[self.model.body_parentid[b]]
        frame = _pose(m.body_pos[b], m.body_quat[b])  # of the body in `parent`, before the next joint
        for j in joints:
            kind, axis = m.jnt_type[j], m.jnt_axis[j]
            anchor = np.zeros(3) if kind in (_FREE, _SLIDE) else m.jnt_pos[j]
            if kind == _FREE:
                frame = np.eye(4)
            is_last = j == joints[-1] and not anchor.any()
            child = name if is_last else f"{name} behind {self.joints[j]}"
            if not is_last:
                self.builder.body(child)
            self.builder.joint(self.joints[j], _KINDS[kind], parent, child, **self.joint_numbers(j),
                               placement=frame @ _pose(anchor) @ self.at_zero(j),
                               axis=axis if kind in (_HINGE, _SLIDE) else None)
            parent, frame = child, _pose(-anchor)
        if parent != name:
            self.builder.joint(f"{name} frame" if len(joints) else name, "fixed", parent, name, placement=frame)

    def at_zero(self, j):
        """The child's pose where the coordinate is zero: the file draws the body where it is `ref`."""
        m, turn = self.model, np.eye(4)
        if m.jnt_type[j] == _SLIDE:
            return _pose(-m.qpos0[m.jnt_qposadr[j]] * m.jnt_axis[j])
        if m.jnt_type[j] == _HINGE:
            half = -m.qpos0[m.jnt_qposadr[j]] / 2.0
            turn = _pose(quaternion=[np.cos(half), *np.sin(half) * m.jnt_axis[j]])
        return turn

    def joint_numbers(self, j):
        """What `Builder.joint` takes of springs, dampers, rotors and limits."""
        m, kind = self.model, self.model.jnt_type[j]
        q, v = m.jnt_qposadr[j], m.jnt_dofadr[j]
        stiffness, pull, damping = self.servos[j]
        found = {"damping": m.dof_damping[v:v + _SIZES[kind]] + damping,
                 "armature": m.dof_armature[v:v + _SIZES[kind]]}
        if kind in (_HINGE, _SLIDE):
            total = m.jnt_stiffness[j] + stiffness
            if total:
                found |= {"stiffness": total, "rest": (m.jnt_stiffness[j] * m.qpos_spring[q] + pull) / total}
            if m.jnt_limited[j]:
                found["limits"] = m.jnt_range[j]
            if m.jnt_actfrclimited[j]:
                found["effort_limit"] = np.abs(m.jnt_actfrcrange[j]).max()
        elif kind == _BALL and m.jnt_stiffness[j]:
            found |= {"stiffness": m.jnt_stiffness[j], "rest": _quaternion(m.qpos_spring[q:q + 4])}
        return found

    # ---- equalities

    def add_equalities(self):
        m, kinds = self.model, self.mujoco.mjtEq
        add = {int(kinds.mjEQ_CONNECT): self.add_connection, int(kinds.mjEQ_WELD): self.add_weld,
               int(kinds.mjEQ_JOINT): self.add_coupling, int(kinds.mjEQ_TENDON): self.add_tendon_coupling}
        for e in range(m.neq):
            name, declare = self.name("equality", e), add.get(m.eq_type[e])
            if declare:
                declare(e, name, bool(m.eq_active0[e]))
            else:
                self.missing["equalities of flexible parts, and distances of shapes"].append(name)

    def ends(self, e):
        """(body, pose in it) of both ends of an equality between bodies or sites; poses None for bodies."""
        m = self.model
        ids = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        if m.eq_objtype[e] == int(self.mujoco.mjtObj.mjOBJ_SITE):
            return [(self.bodies[m.site_bodyid[k]], _pose(m.site_pos[k], m.site_quat[k])) for k in ids]
        return [(self.bodies[k], None) for k in ids]

    def add_connection(self, e, name, active):
        """Two points coincide."""
        (parent, A), (child, B) = self.ends(e)
        data = self.model.eq_data[e]
        self.builder.loop(name, "spherical", parent, child, active=active,
                          parent_placement=_pose(data[:3]) if A is None else A,
                          child_placement=_pose(data[3:6]) if B is None else B)

    def add_weld(self, e, name, active):
        """Two frames coincide; of the data the second body's point comes first."""
        (parent, A), (child, B) = self.ends(e)
        data = self.model.eq_data[e]
        self.builder.loop(name, "fixed", parent, child, active=active,
                          parent_placement=_pose(data[3:6], data[6:10]) if A is None else A,
                          child_placement=_pose(data[:3]) if B is None else B)

    def add_coupling(self, e, name, active):
        """y - y0 = a polynomial of x - x0, of two joints."""
        m, owner = self.model, f"equality {shown(name)}"
        terms = []
        for j in (int(m.eq_obj1id[e]), int(m.eq_obj2id[e])):
            terms.append(({}, 0.0) if j < 0 else ({self.coordinate(j, owner): 1.0}, m.qpos0[m.jnt_qposadr[j]]))
        self.add_polynomial(e, name, active, *terms)

    def add_tendon_coupling(self, e, name, active):
        """The same of the lengths of two tendons."""
        m, terms = self.model, []
        for t in (int(m.eq_obj1id[e]), int(m.eq_obj2id[e])):
            if t >= 0 and not self.is_fixed(t):
                self.missing["equalities of spatial tendons"].append(name)
                return
            terms.append(({}, 0.0) if t < 0 else (self.fixed_tendon(t), m.tendon_length0[t]))
        self.add_polynomial(e, name, active, *terms)

    def is_fixed(self, t):
        """Is the length of a tendon a sum of coordinates?"""
        return self.model.wrap_type[self.model.tendon_adr[t]] == int(self.mujoco.mjtWrap.mjWRAP_JOINT)

    def fixed_tendon(self, t):
        """Its coefficients by coordinate."""
        m, found = self.model, defaultdict(float)
        for k in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
            found[self.coordinate(int(m.wrap_objid[k]), f"tendon {shown(self.name('tendon', t))}")] += m.wrap_prm[k]
        return dict(found)

    def add_polynomial(self, e, name, active, of_y, of_x):
        """y - y0 = a0 + a1 (x - x0) + ... of sums of coordinates; those of higher degree wait for `robot`."""
        (y, y0), (x, x0), a = of_y, of_x, self.model.eq_data[e][:5]
        if a[2:].any() and x:
            self.polynomials.append((name, active, y, x, x0, [a[0] + y0, *a[1:]]))
            return
        slope = a[1] if x else 0.0
        coefficients = defaultdict(float, y)
        for each, c in x.items():
            coefficients[each] -= slope * c
        self.builder.constraint(name, "coupling", coefficients=dict(coefficients),
                                offset=y0 + a[0] - slope * x0, active=active)

    def robot(self):
        """What has been declared, with polynomials, which need to know where its coordinates are."""
        robot = self.builder.build()
        if self.polynomials:
            builder = Builder.of(robot)
            for name, active, *polynomial in self.polynomials:
                builder.custom(name, **polynomial_rows(robot, *polynomial), active=active)
            robot = builder.build()
        return robot

    # ---- actuators

    def linear_servos(self):
        """By joint what its actuators do as springs and dampers: stiffness, pull k q0 + constant, damping."""
        m = self.model
        found = np.zeros((m.njnt, 3))
        for k in range(m.nu):
            if self.is_servo(k) and m.actuator_biasprm[k, :3].any():
                gear, (constant, k_p, k_v) = m.actuator_gear[k, 0], m.actuator_biasprm[k, :3]
                found[m.actuator_trnid[k, 0]] += -gear * gear * k_p, gear * constant, -gear * gear * k_v
        return found

    def is_servo(self, k):
        """Is the force of an actuator gain u + constant + k_p length + k_v velocity, and can a robot have it?

        Springs and dampers of several coordinates, and constant forces without a spring, cannot be had.
        """
        m, mj = self.model, self.mujoco
        constant, k_p, k_v = m.actuator_biasprm[k, :3]
        return (m.actuator_dyntype[k] == int(mj.mjtDyn.mjDYN_NONE)
                and m.actuator_gaintype[k] == int(mj.mjtGain.mjGAIN_FIXED)
                and (m.actuator_biastype[k] == int(mj.mjtBias.mjBIAS_NONE)
                     or m.actuator_biastype[k] == int(mj.mjtBias.mjBIAS_AFFINE))
                and (not (constant or k_p or k_v)
                     or self.drives_one_coordinate(k) and k_p <= 0.0 and k_v <= 0.0 and (k_p or not constant)))

    def drives_one_coordinate(self, k):
        m, kinds = self.model, self.mujoco.mjtTrn
        return (m.actuator_trntype[k] in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
                and m.jnt_type[m.actuator_trnid[k, 0]] in (_HINGE, _SLIDE))

    def gears(self, k):
        """Those of an actuator by velocity coordinate; None where it acts on no coordinates, or changes with them."""
        m, kinds = self.model, self.mujoco.mjtTrn
        gear, target = m.actuator_gear[k], int(m.actuator_trnid[k, 0])
        if self.drives_one_coordinate(k):
            return {self.joints[target]: gear[0]}
        if m.actuator_trntype[k] == int(kinds.mjTRN_JOINT) and m.jnt_type[target] == _BALL:
            names = [self.joints[target] + suffix for suffix in JOINT_KINDS["spherical"].velocities]
            return {name: ratio for name, ratio in zip(names, gear) if ratio}
        if m.actuator_trntype[k] == int(kinds.mjTRN_TENDON) and self.is_fixed(target):
            return {name: gear[0] * ratio for name, ratio in self.fixed_tendon(target).items()}
        return None

    def add_actuators(self):
        m = self.model
        for k in range(m.nu):
            gears = self.gears(k) if self.is_servo(k) else None
            if gears:
                self.builder.actuator(self.name("actuator", k), gears, gear=m.actuator_gainprm[k, 0])
            else:
                self.missing["actuators with a state, of a muscle, or that act on other than coordinates"].append(
                    self.name("actuator", k))

    # ---- home, and what is left out

    def home(self, keyframe):
        """Values by joint name."""
        m, home = self.model, {}
        names = [self.name("key", k) for k in range(m.nkey)]
        if keyframe is not None and keyframe not in names:
            raise ModelError(f"no keyframe {shown(keyframe)}, {suggestion(keyframe, names)}")
        chosen = keyframe or ("home" if "home" in names else names[0] if names else None)
        q = m.key_qpos[names.index(chosen)] if chosen else m.qpos0
        for j, name in enumerate(self.joints):
            k = m.jnt_qposadr[j]
            if m.jnt_type[j] in (_HINGE, _SLIDE):
                home[name] = q[k]
            elif m.jnt_type[j] == _BALL:
                home[name] = _quaternion(q[k:k + 4])
            else:
                home[name] = [*_quaternion(q[k + 3:k + 7]), *q[k:k + 3]]
        return home

    def left_out(self):
        """What the robot does not have: names by what it is."""
        m, found = self.model, self.missing
        for v in np.flatnonzero(m.dof_frictionloss):
            found["the dry friction of joints"].append(self.joints[m.dof_jntid[v]])
        for t in range(m.ntendon):
            if m.tendon_stiffness[t].any() or m.tendon_damping[t].any() or m.tendon_limited[t]:
                found["springs, dampers and limits of tendons"].append(self.name("tendon", t))
        for b in np.flatnonzero(m.body_gravcomp):
            found["compensation of gravity"].append(self.bodies[b])
        if m.opt.density or m.opt.viscosity:
            found["the medium"].append("density and viscosity")
        if m.nflex:
            found["flexible parts"] += [self.name("flex", k) for k in range(m.nflex)]
        return {what: list(dict.fromkeys(names)) for what, names in found.items()}


def _pose(xyz=(0.0, 0.0, 0.0), quaternion=None):
    """The pose of a position and a quaternion as MuJoCo has them, w first."""
    return placement(xyz, quaternion=None if quaternion is None else _quaternion(quaternion))


def _quaternion(wxyz):
    """x, y, z, w of a quaternion of unit length."""
    w, *xyz = np.asarray(wxyz) / np.linalg.norm(wxyz)
    return [*xyz, w]

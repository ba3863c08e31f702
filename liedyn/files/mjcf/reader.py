"""Bodies, joints and names of a model of MuJoCo, declared to a builder."""
from collections import defaultdict

import numpy as np

from liedyn.files.mjcf import passive
from liedyn.machine.errors import ModelError, shown, suggestion
from liedyn.model import GROUND, Builder
from liedyn.model.frames import placement

FREE, BALL, SLIDE, HINGE = range(4)  # in the order of mjtJoint
_KINDS = ("free", "spherical", "prismatic", "revolute")
_ADDRESSES = {"joint": "jnt", "equality": "eq"}  # MuJoCo's fields that abbreviate kinds differently


class Reader:
    """Goes through a model of MuJoCo and declares its parts to a builder.

    Attributes
    ----------
    mujoco : module
    model : MjModel
    builder : Builder
    bodies, joints : list of str
        Names by MuJoCo's numbers.
    missing : dict
        Properties that the robot lacks: names by description.
    renamed : list of str
        Names that were changed, with the new ones.
    of_joints, of_tendons : Passive
    """

    def __init__(self, mujoco, model, source, keyframe):
        self.mujoco, self.model, self.missing, self.renamed = mujoco, model, defaultdict(list), []
        name = mujoco_text(model.names[:model.names.index(b"\0")]) or source.partition(".")[0]
        self.actuators = range(getattr(model, "nactuator", model.nu))
        self._names, self._used = {}, {"body": {GROUND}, "joint": set(), "element": set()}
        self.bodies = [GROUND, *(self.unused("body", self.name("body", b)) for b in range(1, model.nbody))]
        self.joints = self.joint_names()
        self.of_tendons, self.of_joints = passive.of_tendons(self), passive.of_joints(self)
        passive.add_rotors(self, self.of_joints.armature)
        self.gravity = model.opt.gravity * (not self.is_off("GRAVITY"))
        self.builder = Builder(name, gravity=self.gravity, home=self.home(keyframe), source=source)

    # ---- names

    def name(self, kind, k):
        """The name in the file, or kind and number, made unique within the kind."""
        return self.names(kind)[k]

    def names(self, kind):
        """Names of all things of a kind."""
        if kind not in self._names:
            given, used = self.own_names(kind), set()
            used |= set(given) - {None}
            self._names[kind] = [name or _unused(used, f"{kind}{k}") for k, name in enumerate(given)]
        return self._names[kind]

    def own_names(self, kind):
        """Names in the file of all things of a kind; None for those without a name."""
        places = getattr(self.model, f"name_{_ADDRESSES.get(kind, kind)}adr")
        text = self.model.names
        return [mujoco_text(text[k:text.index(b"\0", k)]) or None for k in map(int, places)]

    def unused(self, kind, wanted, suffix=""):
        """A name that no other body or frame, joint or constraint, or force element has."""
        used = self._used[kind]
        name = _unused(used, wanted + suffix if wanted in used else wanted)
        if name != wanted:
            self.renamed.append(f"{wanted}, now {name}")
        return name

    def joint_names(self):
        """The joints' own names; unnamed joints get their bodies' names, with a number if a body has several."""
        m, used = self.model, self._used["joint"]
        found = self.own_names("joint")
        used |= set(found) - {None}
        for j, name in enumerate(found):
            if name is None:
                b = m.jnt_bodyid[j]
                number = f".{j - m.body_jntadr[b] + 1}" if m.body_jntnum[b] > 1 else ""
                found[j] = _unused(used, self.bodies[b] + number)
        return found

    def coordinate(self, j, what):
        """The coordinate of a joint that has one."""
        if not self.is_single(j):
            raise ModelError(f"{what}: joint {shown(self.joints[j])} has several coordinates")
        return self.joints[j]

    def is_single(self, j):
        """True if a joint has one coordinate."""
        return self.model.jnt_type[j] in (HINGE, SLIDE)

    # ---- switches and actuators

    def is_off(self, switch):
        """True if the file switches something off."""
        bits = self.mujoco.mjtDisableBit.__members__
        # older versions of MuJoCo have this switch instead
        names = [switch, "PASSIVE"] if switch in ("SPRING", "DAMPER") else [switch]
        return any(self.model.opt.disableflags & int(bits.get(f"mjDSBL_{name}", 0)) for name in names)

    def has_no_passive_forces(self):
        """True without springs and dampers: MuJoCo then omits compensation of gravity, too."""
        return self.is_off("SPRING") and self.is_off("DAMPER")

    def drives(self, k):
        """True if actuator k is switched on."""
        m = self.model
        group = int(m.actuator_group[k])
        return not (self.is_off("ACTUATION") or 0 <= group < 31 and m.opt.disableactuator >> group & 1)

    def gear(self, k):
        """The six gear numbers of actuator k."""
        places = getattr(self.model, "actuator_outadr", None)
        return self.model.actuator_gear[k if places is None else places[k]]

    def actuator_of(self, control):
        """The number of the actuator that an input belongs to."""
        places = getattr(self.model, "actuator_ctrladr", None)
        return control if places is None else int(np.searchsorted(places, control, side="right")) - 1

    # ---- tree

    def add_bodies(self, servos, efforts):
        """Declare bodies and joints; `servos` (joints, 3) is added to the springs and dampers of joints, `efforts`
        (joints) are largest forces of the inputs."""
        self.efforts = efforts
        m, self.servos = self.model, servos
        for b in range(1, m.nbody):
            R = pose(quaternion=m.body_iquat[b])[:3, :3]
            self.builder.body(self.bodies[b], mass=m.body_mass[b], com=m.body_ipos[b],
                              inertia=R @ np.diag(m.body_inertia[b]) @ R.T)
            self.compensate_gravity(b)
            self.add_joints(b, range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]))

    def add_sites(self):
        """Declare sites with names as frames; if a body has the same name, the frame is `<name> site`."""
        for k, name in enumerate(self.own_names("site")):
            if name:
                self.builder.frame(self.unused("body", name, " site"), *self.site(k))

    def compensate_gravity(self, b):
        """Declare the force that compensates a part of a body's weight."""
        m = self.model
        part = m.body_gravcomp[b] * (not self.has_no_passive_forces())
        if part and m.body_weldid[b]:
            self.bear(self.bodies[b], m.body_ipos[b], part * m.body_mass[b], f"{self.bodies[b]} gravity compensation")

    def bear(self, body, point, mass, name):
        """Declare a force against the weight of a mass."""
        force = -mass * self.gravity
        if force.any():
            self.builder.applied_force(self.unused("element", name), body, point, force)

    def add_joints(self, b, joints):
        """Declare a chain from the parent to body b: a joint moves about its anchor, which is not the body's origin."""
        m, name, parent = self.model, self.bodies[b], self.bodies[self.model.body_parentid[b]]
        frame = pose(m.body_pos[b], m.body_quat[b])  # pose of the body in `parent`, before the next joint
        for j in joints:
            kind, axis = m.jnt_type[j], m.jnt_axis[j]
            anchor = np.zeros(3) if kind in (FREE, SLIDE) else m.jnt_pos[j]
            if kind == FREE:
                frame = np.eye(4)
            is_last = j == joints[-1] and not anchor.any()
            child = name if is_last else _unused(self._used["body"], f"{name} behind {self.joints[j]}")
            if not is_last:
                self.builder.body(child)
            self.builder.joint(self.joints[j], _KINDS[kind], parent, child, **self.joint_numbers(j),
                               placement=frame @ pose(anchor) @ self.at_zero(j), driven=kind != FREE,
                               axis=axis if kind in (HINGE, SLIDE) else None)
            self.add_springs(j, child)
            parent, frame = child, pose(-anchor)
        if parent != name:
            own = _unused(self._used["joint"], f"{name} frame" if len(joints) else name)
            self.builder.joint(own, "fixed", parent, name, placement=frame)

    def at_zero(self, j):
        """The child's pose at coordinate zero; the file draws the body at `ref`."""
        m, turn = self.model, np.eye(4)
        if m.jnt_type[j] == SLIDE:
            return pose(-m.qpos0[m.jnt_qposadr[j]] * m.jnt_axis[j])
        if m.jnt_type[j] == HINGE:
            half = -m.qpos0[m.jnt_qposadr[j]] / 2.0
            turn = pose(quaternion=[np.cos(half), *np.sin(half) * m.jnt_axis[j]])
        return turn

    def joint_numbers(self, j):
        """Arguments of `Builder.joint` for springs, dampers, armatures and limits."""
        m, kind, numbers = self.model, self.model.jnt_type[j], self.of_joints
        q = m.jnt_qposadr[j]
        (stiffness, _), (damping, _) = passive.split(numbers.stiffness[j]), passive.split(numbers.damping[j])
        armature = float(numbers.armature[j])
        if kind == FREE:
            rest = [*_quaternion(m.qpos_spring[q + 3:q + 7]), *m.qpos_spring[q:q + 3]]
            armature = [armature] * 3 + [0.0] * 3  # the translational part is declared in `add_springs`
            return {"damping": damping, "armature": armature, "stiffness": stiffness,
                    "rest": rest if stiffness else None}
        if kind == BALL:
            rest = _quaternion(m.qpos_spring[q:q + 4]) if stiffness else None
            return {"damping": damping, "armature": armature, "stiffness": stiffness, "rest": rest}
        servo, pull, drag = self.servos[j]
        found, total = {"damping": damping + drag, "armature": armature}, stiffness + servo
        if total:
            found |= {"stiffness": total, "rest": (stiffness * m.qpos_spring[q] + pull) / total}
        if m.jnt_limited[j] and not self.has_no_limits():
            found["limits"] = m.jnt_range[j]
        limit = min(np.abs(m.jnt_actfrcrange[j]).max() if m.jnt_actfrclimited[j] else np.inf, self.efforts[j])
        return found | ({"effort_limit": limit} if np.isfinite(limit) else {})

    def has_no_limits(self):
        return self.is_off("CONSTRAINT") or self.is_off("LIMIT")

    def add_springs(self, j, child):
        """Declare what a joint cannot have: polynomials, negative numbers, the translational armature of a free
        joint."""
        m, name, numbers = self.model, self.joints[j], self.of_joints
        kinds = numbers.stiffness[j], numbers.damping[j]
        stiffness, damping = (passive.split(each)[1] for each in kinds)
        if stiffness.any() or damping.any():
            if self.is_single(j):
                self.builder.coordinate_force(self.unused("element", f"{name} spring"), {name: 1.0},
                                              rest=m.qpos_spring[m.jnt_qposadr[j]], **passive.law(stiffness, damping))
            else:
                said = ", ".join(f"{key} {passive.shown_as(x)}" for key, x, more in zip(
                    ("stiffness", "damping"), kinds, (stiffness, damping)) if more.any())
                self.missing["negative and non-linear springs and dampers of balls and free joints"].append(
                    f"{name} ({said})")
        mass = numbers.armature[j]
        if m.jnt_type[j] == FREE and mass:  # it acts along the world's axes: a mass at the origin, without weight
            point = _unused(self._used["body"], f"{child} armature")
            self.builder.body(point, mass=mass)
            self.builder.joint(_unused(self._used["joint"], point), "fixed", child, point)
            self.bear(point, None, mass, point)

    def has_no_friction(self):
        return self.is_off("CONSTRAINT") or self.is_off("FRICTIONLOSS")

    def frictions(self):
        """Dry friction by coordinate, for joints that have one coordinate."""
        m = self.model
        if self.has_no_friction():
            return {}
        return {self.joints[j]: m.dof_frictionloss[m.jnt_dofadr[j]] for j in range(m.njnt)
                if self.is_single(j) and m.dof_frictionloss[m.jnt_dofadr[j]]}

    def pose(self, xyz, quaternion):
        """The pose for a position and a quaternion of MuJoCo."""
        return pose(xyz, quaternion)

    def site(self, k):
        """The body of a site, and the site's pose in it."""
        m = self.model
        return self.bodies[m.site_bodyid[k]], pose(m.site_pos[k], m.site_quat[k])

    def home(self, keyframe):
        """Home values by joint name."""
        m, home = self.model, {}
        names = self.names("key")
        if keyframe is not None and keyframe not in names:
            raise ModelError(f"no keyframe {shown(keyframe)}, {suggestion(keyframe, names)}")
        chosen = keyframe or ("home" if "home" in names else names[0] if names else None)
        q = m.key_qpos[names.index(chosen)] if chosen else m.qpos0
        for j, name in enumerate(self.joints):
            k = m.jnt_qposadr[j]
            if self.is_single(j):
                home[name] = q[k]
            elif m.jnt_type[j] == BALL:
                home[name] = _quaternion(q[k:k + 4])
            else:
                home[name] = [*_quaternion(q[k + 3:k + 7]), *q[k:k + 3]]
        return home


def mujoco_text(text):
    """A name from MuJoCo as text; ModelError if its bytes are not UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise ModelError(f"a name is not UTF-8: {shown(text)}") from None


def _unused(used, wanted):
    """A name derived from `wanted` that is not in `used`, to which it is added."""
    while wanted in used:
        wanted += "'"
    used.add(wanted)
    return wanted


def pose(xyz=(0.0, 0.0, 0.0), quaternion=None):
    """The pose for a position and a quaternion of MuJoCo, w first."""
    return placement(xyz, quaternion=None if quaternion is None else _quaternion(quaternion))


def _quaternion(wxyz):
    """x, y, z, w of a quaternion of unit length."""
    w, *xyz = np.asarray(wxyz) / np.linalg.norm(wxyz)
    return [*xyz, w]

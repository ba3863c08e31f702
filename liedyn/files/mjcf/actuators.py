"""Actuators of MJCF files: inputs, and the feedback of servos as springs and dampers."""
import numpy as np

from liedyn.files.mjcf.reader import BALL, FREE
from liedyn.files.mjcf.passive import fixed_tendon, is_fixed, line, path
from liedyn.model.description import GROUND
from liedyn.model.kinds import JOINT_KINDS


def linear_servos(reader):
    """Servos as springs and dampers of joints: stiffness, stiffness times rest, damping; shape (joints, 3)."""
    m, found = reader.model, np.zeros((reader.model.njnt, 3))
    for k in filter(reader.drives, reader.actuators):
        if _is_linear(reader, k) and _is_joint_spring(reader, k):
            gear, (constant, k_p, k_v) = reader.gear(k)[0], m.actuator_biasprm[k, :3]
            found[m.actuator_trnid[k, 0]] += -gear * gear * k_p, gear * constant, -gear * gear * k_v
    return found


def effort_limits(reader):
    """Largest forces of the inputs on joints, shape (joints): those of motors whose force or input the file limits,
    if a motor is all that drives a joint; infinite elsewhere. Other limits are told.

    Force and input are limited before the gear: at most gear forcerange, and gear gain ctrlrange.
    """
    m, found = reader.model, np.full(reader.model.njnt, np.inf)
    drivers = [set(_driven_joints(reader, k)) for k in reader.actuators]
    for k in filter(reader.drives, reader.actuators):
        ranges, name = _ranges(reader, k), reader.name("actuator", k)
        joint = int(m.actuator_trnid[k, 0])
        if not (_is_linear(reader, k) and _drives_one(reader, k) and not _bias(reader, k).any()
                and sum(joint in each for each in drivers) == 1):
            for what in ranges:
                reader.missing[f"{what} of actuators other than motors that drive a joint alone"].append(name)
            continue
        for low, high, unit in ranges.values():
            found[joint] = min(found[joint], abs(unit * reader.gear(k)[0]) * max(abs(low), abs(high)))
            if low != -high:
                reader.missing["that forces of actuators are limited otherwise to one side"].append(
                    f"{name} ({low:g} {high:g})")
    return found


def _ranges(reader, k):
    """Limits of the force and of the input of an actuator: low, high, and the force of one unit; by description."""
    m, found = reader.model, {}
    if m.actuator_forcelimited[k]:
        found["the force limits"] = *m.actuator_forcerange[k], 1.0
    inputs = [c for c in range(len(m.actuator_ctrllimited)) if reader.actuator_of(c) == k and m.actuator_ctrllimited[c]]
    if inputs and not reader.is_off("CLAMPCTRL"):
        found["the ranges of inputs"] = *m.actuator_ctrlrange[inputs[0]], m.actuator_gainprm[k, 0]
    return found


def _driven_joints(reader, k):
    """Numbers of the joints on which an actuator acts, as far as it acts on coordinates."""
    m, target = reader.model, int(reader.model.actuator_trnid[k, 0])
    if not reader.drives(k):
        return ()
    if m.actuator_trntype[k] in (int(reader.mujoco.mjtTrn.mjTRN_JOINT), int(reader.mujoco.mjtTrn.mjTRN_JOINTINPARENT)):
        return target,
    if _is_tendon(reader, k) and is_fixed(reader, target):
        first = m.tendon_adr[target]
        return m.wrap_objid[first:first + m.tendon_num[target]].tolist()
    return ()


def declare(reader):
    """Declare all actuators that are linear and act on coordinates or between two points.

    Springs of servos that no joint can have become force elements.
    """
    m = reader.model
    for k in reader.actuators:
        if not reader.drives(k):
            reader.missing["actuators that the file switches off"].append(reader.name("actuator", k))
            continue
        name, ratios = reader.name("actuator", k), _ratios(reader, k) if _is_linear(reader, k) else None
        if not ratios:
            if not (_is_linear(reader, k) and (_add_cylinder(reader, k, name) or _add_thruster(reader, k, name))):
                reader.missing["actuators with a state, of a muscle, or that act on other than coordinates, sites and "
                               "tendons without pulleys and side sites within geoms"].append(name)
            continue
        gear, (constant, k_p, k_v) = 1.0 if _is_ball(reader, k) else reader.gear(k)[0], _bias(reader, k)
        reader.builder.actuator(name, ratios, gear=gear * m.actuator_gainprm[k, 0])
        if (constant or k_p or k_v) and not _is_joint_spring(reader, k):
            # the force gear (constant + k_p gear x + k_v gear dx/dt) on the sum x, which pulls if negative
            reader.builder.coordinate_force(reader.unused("element", f"{name} servo"), ratios,
                                            stiffness=-gear * gear * k_p, damping=-gear * gear * k_v,
                                            preload=-gear * constant)


def _add_cylinder(reader, k, name):
    """Declare an actuator of a tendon between two sites, and its servo as a spring; False for other actuators."""
    m, target = reader.model, int(reader.model.actuator_trnid[k, 0])
    ends = line(reader, target) if _is_tendon(reader, k) else None
    if not ends:
        return _is_tendon(reader, k) and _add_winch(reader, k, name, path(reader, target))
    gear, (constant, k_p, k_v) = reader.gear(k)[0], _bias(reader, k)
    reader.builder.cylinder(name, *ends, gear=gear * m.actuator_gainprm[k, 0])
    if constant or k_p or k_v:
        reader.builder.spring(reader.unused("element", f"{name} servo"), *ends, stiffness=-gear * gear * k_p,
                              damping=-gear * gear * k_v, preload=-gear * constant)
    return True


def _add_winch(reader, k, name, way):
    """Declare an actuator of a tendon over several sites, and its servo as a spring; False for other tendons."""
    if not way:
        return False
    gear, (constant, k_p, k_v) = reader.gear(k)[0], _bias(reader, k)
    reader.builder.winch(name, way, gear=-gear * reader.model.actuator_gainprm[k, 0])
    if constant or k_p or k_v:
        reader.builder.cable(reader.unused("element", f"{name} servo"), way, stiffness=-gear * gear * k_p,
                             damping=-gear * gear * k_v, preload=-gear * constant, pushes=True)
    return True


def _add_thruster(reader, k, name):
    """Declare an actuator of a site, alone or in the axes of a site of the world; False for other actuators.

    Its gear is a force and a moment at the site; a constant bias becomes an applied force.
    """
    m = reader.model
    if m.actuator_trntype[k] != int(reader.mujoco.mjtTrn.mjTRN_SITE):
        return False
    (site, reference), (constant, k_p, k_v) = map(int, m.actuator_trnid[k]), _bias(reader, k)
    (body, X), axes, R = reader.site(site), "body", np.eye(3)
    if reference >= 0:
        (held, Y), axes = reader.site(reference), "world"
        R = Y[:3, :3]
        if held != GROUND:
            return False
    force, torque = (R @ part for part in np.split(np.array(reader.gear(k), float), 2))
    if body == GROUND or k_p and reference >= 0 or k_v or not (force.any() or torque.any()):
        return False
    gain = float(m.actuator_gainprm[k, 0])
    reader.builder.thruster(name, body, X, force=gain * force, torque=gain * torque, axes=axes)
    if constant:
        reader.builder.applied_force(reader.unused("element", f"{name} bias"), body, X, constant * force,
                                     constant * torque, axes)
    return True


def _is_tendon(reader, k):
    return reader.model.actuator_trntype[k] == int(reader.mujoco.mjtTrn.mjTRN_TENDON)


def _bias(reader, k):
    """Constant, and coefficients of length and velocity, of an actuator's force without input."""
    affine = reader.model.actuator_biastype[k] == int(reader.mujoco.mjtBias.mjBIAS_AFFINE)
    return reader.model.actuator_biasprm[k, :3] if affine else np.zeros(3)


def _is_linear(reader, k):
    """True if the force of an actuator is gain u + constant + k_p length + k_v velocity, on coordinates."""
    m, mj = reader.model, reader.mujoco
    return (m.actuator_dyntype[k] == int(mj.mjtDyn.mjDYN_NONE)
            and m.actuator_gaintype[k] == int(mj.mjtGain.mjGAIN_FIXED)
            and m.actuator_biastype[k] in (int(mj.mjtBias.mjBIAS_NONE), int(mj.mjtBias.mjBIAS_AFFINE))
            and not (_is_ball(reader, k) and _bias(reader, k).any()))


def _is_joint_spring(reader, k):
    """True if spring and damper of a servo can be those of a joint."""
    constant, k_p, k_v = _bias(reader, k)
    return _drives_one(reader, k) and k_p <= 0.0 and k_v <= 0.0 and bool(k_p or not constant)


def _drives_one(reader, k):
    """True if an actuator acts on a joint with one coordinate."""
    m, kinds = reader.model, reader.mujoco.mjtTrn
    return (m.actuator_trntype[k] in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
            and reader.is_single(m.actuator_trnid[k, 0]))


def _is_ball(reader, k):
    """True if an actuator acts on a ball or free joint, about axes of the child."""
    m = reader.model
    if m.actuator_trntype[k] != int(reader.mujoco.mjtTrn.mjTRN_JOINT):
        return False
    kind = m.jnt_type[m.actuator_trnid[k, 0]]
    return bool(kind == BALL or kind == FREE and not reader.gear(k)[:3].any())


def _ratios(reader, k):
    """Derivatives of the actuator's length by velocity coordinate; None if it is not a sum of coordinates."""
    m, target = reader.model, int(reader.model.actuator_trnid[k, 0])
    if _drives_one(reader, k):
        return {reader.joints[target]: 1.0}
    if _is_ball(reader, k):
        names = [reader.joints[target] + suffix for suffix in JOINT_KINDS["spherical"].velocities]
        gear = reader.gear(k)[3:] if m.jnt_type[target] == FREE else reader.gear(k)[:3]
        return {name: float(ratio) for name, ratio in zip(names, gear) if ratio}
    if _is_tendon(reader, k) and is_fixed(reader, target):
        return fixed_tendon(reader, target)
    return None

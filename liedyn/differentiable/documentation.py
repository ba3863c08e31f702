"""What the functions of `liedyn.jax`, `liedyn.torch` and `liedyn.casadi` do: the same in all three."""
import re


_STATE = """
    robot : Robot
    q : {array}, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w) of any length but zero].
    v : {array}, shape (..., nv)
        Velocity [rad/s, m/s]."""
_RAISES = """
    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is zero. While a program of the framework runs,
        its own error has the text of it.
    """
_NOTES = """
    Notes
    -----
    {source} Derivatives are by the numbers of q. Quaternions may be of any length, and derivatives along them are zero:
    functions of q are functions of the rotation (`liedyn.differentiable.quaternions`).
    """
TEXTS = {
    "rnea": f"""Inverse dynamics of the open tree, as `liedyn.rnea`.

    Parameters
    ----------{_STATE}
    a : {{array}}, shape (..., nv)
        Acceleration [rad/s^2, m/s^2].

    Returns
    -------
    tau : {{array}}, shape (..., nv)
        Generalised forces [N m, N].
    {_RAISES}{_NOTES.replace("{source}", "Singh, Russell and Wensing 2022, eq. 25-28 (`liedyn.rnea_derivatives`).")}
    """,
    "forward_dynamics": f"""Accelerations and multipliers of a mechanism, as `liedyn.forward_dynamics`.

    Parameters
    ----------{_STATE}
    tau : {{array}}, shape (..., nv)
        Generalised forces [N m, N].

    Returns
    -------
    Acceleration
        ``a``, shape (..., nv), and ``lam``, shape (..., m), of no length for a tree [rad/s^2, m/s^2; N, N m].
    {_RAISES}{_NOTES.replace("{source}", "Spencer 2004, 2.3 and 2.4.")}
    """,
    "forward_kinematics": f"""Poses of all bodies in the world, as `liedyn.forward_kinematics`.

    Parameters
    ----------{_STATE[:_STATE.index("    v :")].rstrip()}

    Returns
    -------
    poses : {{array}}, shape (..., nbodies, 4, 4)
        Homogeneous transforms from body to world coordinates [m], in the order of ``robot.body_names``.
    {_RAISES}{_NOTES.replace("{source}", "Spencer 2004, A.2; dT = T [J dtheta].")}
    """,
    "pose": f"""Pose of one body in the world, as `liedyn.pose`.

    Parameters
    ----------{_STATE[:_STATE.index("    v :")].rstrip()}
    body : str
        A body or frame.

    Returns
    -------
    T : {{array}}, shape (..., 4, 4)
        Homogeneous transform from body to world coordinates [m].
    {_RAISES.replace("A shape", "The body is unknown, a shape")}{_NOTES.replace(
        "{source}", "Spencer 2004, A.2; dT = T [J dtheta].")}
    """,
}


def documented(array, columns=False):
    """Decorator: the text of a function of this name, for arrays of this kind, before its own examples.

    States are rows along leading axes, or in `columns`.
    """
    def add(function):
        if function.__doc__:
            text = TEXTS[function.__name__].replace("{array}", array)
            if columns:
                text = re.sub(r"\(\.\.\., (\w+)\)", r"(\1, n)", text).replace("shape (..., 4, 4)", "shape (4, 4 n)")
                text = text.replace("poses : " + array + ", shape (..., nbodies, 4, 4)",
                                    "poses : tuple of " + array + ", each of shape (4, 4 n)")
            function.__doc__ = text.rstrip() + "\n\n    " + function.__doc__.lstrip()
        return function

    return add

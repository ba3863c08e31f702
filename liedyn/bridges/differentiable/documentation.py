"""Documentation of the functions that `liedyn.jax`, `liedyn.torch` and `liedyn.casadi` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from liedyn.typing import Function


class Text(NamedTuple):
    """For a function: names of its arguments and results, described in ARGUMENTS and RESULTS, and its source."""

    summary: str
    arguments: str
    result: str
    source: str
    errors: str = ""


RUN = ("The derivative is that of the steps themselves, stages and projection included, by all coordinates: also by\n"
       "    such that leave the constraints, to which the projection returns\n"
       "    (`liedyn.motion.gradients.step_derivatives`).")
RUN_ERRORS = """
    ClosureError
        A loop is open at the start.
    SimulationError
        The run has to stop."""
TEXTS = {
    "rnea": Text("Inverse dynamics of the open tree, as `liedyn.rnea`.", "q v a inertia", "tau",
                 "Singh, Russell and Wensing 2022, eq. 25-28 (`liedyn.rnea_derivatives`)."),
    "forward_dynamics": Text(
        "Accelerations and multipliers of a mechanism, as `liedyn.forward_dynamics`.", "q v tau inertia",
        "acceleration",
        "Spencer 2004, 2.3 and 2.4; derivatives by all coordinates, also by such that open loops\n"
        "    (`liedyn.forward_dynamics_derivatives`).", """
    SingularConfigurationError
        As `liedyn.forward_dynamics`."""),
    "step": Text("One step of a mechanism, as `liedyn.step`: Runge-Kutta of order four, and projection on the "
                 "constraints.", "start v tau dt inertia", "state", RUN, RUN_ERRORS),
    "rollout": Text("The states of a run, as `liedyn.simulate` makes them, with forces that are held in each step.",
                    "start v forces dt inertia", "states", RUN, RUN_ERRORS),
    "forward_kinematics": Text("Poses of all bodies in the world, as `liedyn.forward_kinematics`.", "q", "poses",
                               "Spencer 2004, A.2; dT = T [J dtheta]."),
    "pose": Text("Pose of one body in the world, as `liedyn.pose`.", "q body", "T",
                 "Spencer 2004, A.2; dT = T [J dtheta]."),
}
ARGUMENTS = {
    "q": "q : {array}, shape {q}\n        Configuration [rad, m; quaternions (x, y, z, w) of any length but zero].",
    "start": "q : {array}, shape {q}\n        Configuration that satisfies the constraints [rad, m; quaternions "
             "(x, y, z, w) of any length but zero].",
    "v": "v : {array}, shape {v}\n        Velocity [rad/s, m/s].",
    "a": "a : {array}, shape {v}\n        Acceleration [rad/s^2, m/s^2].",
    "tau": "tau : {array}, shape {v}\n        Generalised forces [N m, N].",
    "forces": "tau : {array}, shape {forces}\n        Generalised forces [N m, N] in each step.",
    "dt": "dt : float\n        Length of a step [s].",
    "inertia": "inertia : {array}, shape {inertia}, optional\n        Inertial parameters of all bodies, as "
               "`liedyn.inertial_parameters` has them, instead of\n        the robot's own; others for each state cost "
               "milliseconds for each.",
    "body": "body : str\n        A body or frame.",
    "parameters": "parameters : dict, optional\n        Other numbers of the robot by name, each {array} of shape "
                  "(...): ``stiffness:spring``,\n        ``damping:joint``, ``rest:joint`` and what else changes "
                  "forces alone, as for `liedyn.trim`.\n        Others for each state cost milliseconds for each.",
}
RESULTS = {
    "tau": "tau : {array}, shape {v}\n        Generalised forces [N m, N].",
    "acceleration": "Acceleration\n        Accelerations ``a``, shape {v} [rad/s^2, m/s^2], and multipliers ``lam``, "
                    "shape\n        {lam}, of no length for a tree.",
    "state": "State\n        ``q``, shape {q}, and ``v``, shape {v}, at the end of the step.",
    "states": "State\n        ``q``, shape {all_q}, and ``v``, shape {all_v}, the start first.",
    "poses": "poses : {poses}\n        Homogeneous transforms from body to world coordinates [m], in the order of "
             "``robot.body_names``.",
    "T": "T : {array}, shape {pose}\n        Homogeneous transform from body to world coordinates [m].",
}
ROWS = {"q": "(..., nq)", "inertia": "(..., nbodies, 10)", "v": "(..., nv)", "lam": "(..., m)",
        "forces": "(..., steps, nv)", "all_q": "(..., steps + 1, nq)", "all_v": "(..., steps + 1, nv)",
        "pose": "(..., 4, 4)", "poses": "{array}, shape (..., nbodies, 4, 4)"}
COLUMNS = {"q": "(nq, n)", "inertia": "(10 nbodies, n)", "v": "(nv, n)", "lam": "(m, n)",
           "forces": "(nv, steps)", "all_q": "(nq, steps + 1)", "all_v": "(nv, steps + 1)", "pose": "(4, 4 n)",
           "poses": "tuple of {array}, each of shape (4, 4 n)"}
DOCUMENTATION = """{summary}

    Parameters
    ----------
    robot : Robot
    {arguments}

    Returns
    -------
    {result}

    Raises
    ------
    InputError, ModelError
        An argument does not fit, as `liedyn` has it, or a quaternion is zero. While a program of the framework runs,
        its own error has the text of this.{errors}

    Notes
    -----
    {source}
    Derivatives are by the numbers of q; those along a quaternion are zero, as functions of q are functions of the
    rotation (`liedyn.bridges.differentiable.quaternions`).

    """


def documented(array: str, shapes: dict[str, str] = ROWS, more: str = "") -> Callable[[Function], Function]:
    """Decorator: puts the text for a function of this name, for this kind of arrays and shapes, before its examples;
    `more` are arguments that this framework has besides."""
    def add(function):
        if function.__doc__:  # there are no docstrings under python -OO
            text = TEXTS[function.__name__]
            arguments = "\n    ".join(ARGUMENTS[each] for each in (*text.arguments.split(), *more.split()))
            full = DOCUMENTATION.format(summary=text.summary, arguments=arguments, result=RESULTS[text.result],
                                        source=text.source, errors=text.errors)
            named = {name: shape.format(array=array) for name, shape in shapes.items()}
            function.__doc__ = full.format(array=array, **named) + function.__doc__.lstrip()
        return function

    return add

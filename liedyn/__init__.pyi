"""The public names of `liedyn`, for editors, type checkers and `liedyn/__init__.py`, which reads this file.

What stands above the line below is imported with `liedyn`; what stands beneath it when it is asked for.
"""

from liedyn.files import bundled, load, load_mjcf, load_sdf, load_toml, load_urdf, save, save_toml
from liedyn.machine.errors import (
    AccumulationError, CacheWarning, ClosureError, ConditionWarning, ContactWarning, ControllabilityError,
    InputError, LiedynError, ModelError, ModelWarning, SimulationError, SingularConfigurationError,
)
from liedyn.mechanics.tree.aba import aba
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives
from liedyn.mechanics.tree.centroidal import centroidal_momentum_matrix, centroidal_momentum_matrix_dot
from liedyn.mechanics.tree.configuration import difference, integrate, neutral, random_configuration
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.energy import center_of_mass, kinetic_energy, momentum, potential_energy, total_mass
from liedyn.mechanics.tree.forward_kinematics import forward_kinematics, pose
from liedyn.mechanics.tree.jacobians import body_jacobian, body_jacobian_ddot, body_jacobian_dot, body_jacobian_dq
from liedyn.mechanics.tree.momenta import momentum_terms
from liedyn.mechanics.tree.regressor import inertial_regressor
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives
from liedyn.mechanics.tree.world_axes import world_acceleration, world_jacobian, world_jacobian_dot
from liedyn.model import Builder, Robot, placement, reduced, subtree
from liedyn.model.inertial_parameters import inertial_parameters, with_inertial_parameters
from liedyn.model.laws import GasSpring, Motor, PolynomialSpring

# ---- imported when it is asked for

from liedyn import control as control
from liedyn import files as _files
from liedyn import kernels as kernels
from liedyn import lie as lie
from liedyn import linear as _linear
from liedyn import typing as typing
from liedyn.bridges import specialization as specialization
from liedyn.look import animation as animation
from liedyn.look import plotting as plotting
from liedyn.mechanics import constraints as constraints
from liedyn.mechanics import dynamics as dynamics
from liedyn.model import symbolic as symbolic
from liedyn.motion import simulation as simulation
from liedyn.bridges.large import LargeResult, map_parameters, map_states, open_results
from liedyn.bridges.specialization import specialize
from liedyn.control.constrained import PIDC, HybridController, controllability, inverse_dynamics
from liedyn.control.estimation import (
    ExtendedKalmanFilter, KalmanBucyFilter, KalmanFilter, MovingHorizonEstimator, OutputFeedback, dkalman, kalman,
    moving_horizon,
)
from liedyn.control.regulation import GainSchedule, Regulator, TrackingRegulator, dlqr, gain_schedule, lqr, tvlqr
from liedyn.control.systems import SystemFeedback, from_control, to_control
from liedyn.files.pinocchio_reader import from_pinocchio
from liedyn.files.pinocchio_writer import to_pinocchio
from liedyn.linear import frequency_response, linearize, modes, underlying
from liedyn.linear.feedback import check_feedback
from liedyn.linear.sensitivity import Sensitivity, sensitivities
from liedyn.look.viewer import export_html, view
from liedyn.mechanics.constraints import (
    check_constraint, close, closure_error, complete_velocity, constraint_bias, constraint_jacobian,
    constraint_wrenches, velocity_error, virtual_coordinates, virtual_jacobian, world_constraint_wrenches,
)
from liedyn.mechanics.dynamics import canonical_equations, canonical_momenta, forward_dynamics, velocity_from_momenta
from liedyn.mechanics.elements import actuator_matrix, element_forces, element_states
from liedyn.motion.discretize import discretize
from liedyn.motion.gradients import (
    ForwardDynamicsDerivatives, RunDerivatives, RunGradient, RunVariation, differentiate_run,
    forward_dynamics_derivatives,
)
from liedyn.motion.simulation import (
    Adaptive, Baumgarte, Event, EventRecord, GeneralizedAlpha, RealTimeLoop, Sampled, Stepper, Trajectories,
    Trajectory, VirtualCoupler, simulate, step,
)
from liedyn.tasks.identification import (
    BaseParameters, Excitation, Identification, IdentificationError, IdentificationWarning, base_parameters,
    dynamic_parameters, excitation, identify, low_pass, measured_motion, regressor,
)
from liedyn.tasks.operating_points import Branch, SpecialPoint, Trim, TrimError, continuation, trim
from liedyn.tasks.optimal_motion import (
    MotionWarning, NLPSolver, OptimalMotion, OptimizationError, PathFunction, clearance, optimize_motion,
)
from liedyn.tasks.planning import MPC, Cost, Limits, Phase, Plan, PlanError, PlanWarning, ddp
from liedyn.tasks.reaching import (
    CenterOfMassTarget, DirectionTarget, InfeasibleError, InverseKinematics, OrientationTarget, PointTarget,
    PoseTarget, ReachError, ReachWarning, Target, differential_inverse_kinematics, inverse_kinematics,
)

io = _files
linearization = _linear
__version__: str

__all__ = [
    "AccumulationError", "Adaptive", "BaseParameters", "Baumgarte", "Branch", "Builder", "CacheWarning",
    "CenterOfMassTarget", "ClosureError", "ConditionWarning", "ContactWarning", "ControllabilityError", "Cost",
    "DirectionTarget", "Event", "EventRecord", "Excitation", "ExtendedKalmanFilter", "ForwardDynamicsDerivatives",
    "GainSchedule", "GasSpring", "GeneralizedAlpha", "HybridController", "Identification", "IdentificationError",
    "IdentificationWarning", "InfeasibleError", "InputError", "InverseKinematics", "KalmanBucyFilter",
    "KalmanFilter", "LargeResult", "LiedynError", "Limits", "MPC", "ModelError", "ModelWarning", "MotionWarning",
    "Motor", "MovingHorizonEstimator", "NLPSolver", "OptimalMotion", "OptimizationError", "OrientationTarget",
    "OutputFeedback", "PIDC", "PathFunction", "Phase", "Plan", "PlanError", "PlanWarning", "PointTarget",
    "PolynomialSpring", "PoseTarget", "ReachError", "ReachWarning", "RealTimeLoop", "Regulator", "Robot",
    "RunDerivatives", "RunGradient", "RunVariation", "Sampled", "Sensitivity", "SimulationError",
    "SingularConfigurationError", "SpecialPoint", "Stepper", "SystemFeedback", "Target", "TrackingRegulator",
    "Trajectories", "Trajectory", "Trim", "TrimError", "VirtualCoupler", "aba", "aba_derivatives",
    "actuator_matrix", "base_parameters", "body_jacobian", "body_jacobian_ddot", "body_jacobian_dot",
    "body_jacobian_dq", "bundled", "canonical_equations", "canonical_momenta", "center_of_mass",
    "centroidal_momentum_matrix", "centroidal_momentum_matrix_dot",
    "check_constraint", "check_feedback", "clearance", "close", "closure_error", "complete_velocity",
    "constraint_bias", "constraint_jacobian", "constraint_wrenches", "continuation", "controllability", "crba",
    "ddp", "difference", "differential_inverse_kinematics", "differentiate_run", "discretize", "dkalman", "dlqr",
    "dynamic_parameters", "element_forces", "element_states", "excitation", "export_html", "forward_dynamics",
    "forward_dynamics_derivatives", "forward_kinematics", "frequency_response", "from_control", "from_pinocchio",
    "gain_schedule", "identify", "inertial_parameters", "inertial_regressor", "integrate", "inverse_dynamics",
    "inverse_kinematics", "kalman", "kinetic_energy", "linearize", "load", "load_mjcf", "load_sdf", "load_toml",
    "load_urdf", "low_pass", "lqr", "map_parameters", "map_states", "measured_motion", "modes", "momentum",
    "momentum_terms", "moving_horizon", "neutral", "open_results", "optimize_motion", "placement", "pose",
    "potential_energy", "random_configuration", "reduced", "regressor", "rnea", "rnea_derivatives", "save",
    "save_toml", "sensitivities", "simulate", "specialize", "step", "subtree", "to_control", "to_pinocchio",
    "total_mass", "trim", "tvlqr", "underlying", "velocity_error", "velocity_from_momenta", "view",
    "virtual_coordinates", "virtual_jacobian", "with_inertial_parameters", "world_acceleration",
    "world_constraint_wrenches", "world_jacobian", "world_jacobian_dot",
]

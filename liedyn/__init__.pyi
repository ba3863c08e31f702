"""The public names of `liedyn`, for editors, type checkers and `liedyn/__init__.py`, which reads this file.

What stands above the first line below is imported with `liedyn`; what stands beneath it when it is asked for.
"""

from liedyn.files import (
    bundled as bundled, load as load, load_mjcf as load_mjcf, load_sdf as load_sdf, load_toml as load_toml,
    load_urdf as load_urdf, save as save, save_toml as save_toml,
)
from liedyn.machine.errors import (
    AccumulationError as AccumulationError, CacheWarning as CacheWarning, ClosureError as ClosureError,
    ConditionWarning as ConditionWarning, ContactWarning as ContactWarning,
    ControllabilityError as ControllabilityError, InputError as InputError, LiedynError as LiedynError,
    ModelError as ModelError, ModelWarning as ModelWarning, SimulationError as SimulationError,
    SingularConfigurationError as SingularConfigurationError,
)
from liedyn.mechanics.tree.aba import aba as aba
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives as aba_derivatives
from liedyn.mechanics.tree.aba_second_derivatives import aba_second_derivatives as aba_second_derivatives
from liedyn.mechanics.tree.centroidal import (
    centroidal_momentum_matrix as centroidal_momentum_matrix,
    centroidal_momentum_matrix_dot as centroidal_momentum_matrix_dot,
)
from liedyn.mechanics.tree.configuration import (
    difference as difference, integrate as integrate, neutral as neutral,
    random_configuration as random_configuration,
)
from liedyn.mechanics.tree.coriolis_matrix import coriolis_matrix as coriolis_matrix
from liedyn.mechanics.tree.crba import crba as crba
from liedyn.mechanics.tree.energy import (
    center_of_mass as center_of_mass, kinetic_energy as kinetic_energy, momentum as momentum,
    potential_energy as potential_energy, total_mass as total_mass,
)
from liedyn.mechanics.tree.forward_kinematics import forward_kinematics as forward_kinematics, pose as pose
from liedyn.mechanics.tree.jacobians import (
    body_jacobian as body_jacobian, body_jacobian_ddot as body_jacobian_ddot,
    body_jacobian_dot as body_jacobian_dot, body_jacobian_dq as body_jacobian_dq,
)
from liedyn.mechanics.tree.momenta import momentum_terms as momentum_terms
from liedyn.mechanics.tree.regressor import inertial_regressor as inertial_regressor
from liedyn.mechanics.tree.rnea import rnea as rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives as rnea_derivatives
from liedyn.mechanics.tree.rnea_second_derivatives import rnea_second_derivatives as rnea_second_derivatives
from liedyn.mechanics.tree.world_axes import (
    world_acceleration as world_acceleration, world_jacobian as world_jacobian,
    world_jacobian_dot as world_jacobian_dot,
)
from liedyn.model import (
    Builder as Builder, Robot as Robot, placement as placement, reduced as reduced, subtree as subtree,
)
from liedyn.model.cables import Pulley as Pulley
from liedyn.model.inertial_parameters import (
    inertial_parameters as inertial_parameters, with_inertial_parameters as with_inertial_parameters,
)
from liedyn.model.laws import GasSpring as GasSpring, Motor as Motor, PolynomialSpring as PolynomialSpring

# ---- imported when it is asked for

from liedyn.bridges.fmu import export_fmu as export_fmu
from liedyn.bridges.large import (
    LargeResult as LargeResult, map_parameters as map_parameters, map_states as map_states,
    open_results as open_results,
)
from liedyn.bridges.specialization import generate_c as generate_c, specialize as specialize
from liedyn.control.constrained import (
    PIDC as PIDC, HybridController as HybridController, controllability as controllability,
    inverse_dynamics as inverse_dynamics,
)
from liedyn.control.estimation import (
    ExtendedKalmanFilter as ExtendedKalmanFilter, KalmanBucyFilter as KalmanBucyFilter,
    KalmanFilter as KalmanFilter, MovingHorizonEstimator as MovingHorizonEstimator,
    OutputFeedback as OutputFeedback, dkalman as dkalman, kalman as kalman, moving_horizon as moving_horizon,
)
from liedyn.control.regulation import (
    GainSchedule as GainSchedule, Regulator as Regulator, TrackingRegulator as TrackingRegulator, dlqr as dlqr,
    gain_schedule as gain_schedule, lqr as lqr, tvlqr as tvlqr,
)
from liedyn.control.systems import (
    SystemFeedback as SystemFeedback, from_control as from_control, to_control as to_control,
)
from liedyn.files.pinocchio_reader import from_pinocchio as from_pinocchio
from liedyn.files.pinocchio_writer import to_pinocchio as to_pinocchio
from liedyn.linear import (
    frequency_response as frequency_response, linearize as linearize, modes as modes, underlying as underlying,
)
from liedyn.linear.feedback import check_feedback as check_feedback
from liedyn.linear.second.curvature import Curvature as Curvature, curvature as curvature
from liedyn.linear.sensitivity import Sensitivity as Sensitivity, sensitivities as sensitivities
from liedyn.look.viewer import export_html as export_html, view as view
from liedyn.mechanics.constraints import (
    check_constraint as check_constraint, close as close, closure_error as closure_error,
    complete_velocity as complete_velocity, constraint_bias as constraint_bias,
    constraint_jacobian as constraint_jacobian, constraint_wrenches as constraint_wrenches,
    velocity_error as velocity_error, virtual_coordinates as virtual_coordinates,
    virtual_jacobian as virtual_jacobian, world_constraint_wrenches as world_constraint_wrenches,
)
from liedyn.mechanics.contact.distances import Distances as Distances, distances as distances
from liedyn.mechanics.dynamics import (
    canonical_equations as canonical_equations, canonical_momenta as canonical_momenta,
    forward_dynamics as forward_dynamics, joint_wrenches as joint_wrenches,
    velocity_from_momenta as velocity_from_momenta, world_joint_wrenches as world_joint_wrenches,
)
from liedyn.mechanics.elements import (
    actuator_matrix as actuator_matrix, cable_lengths as cable_lengths, element_forces as element_forces,
    element_states as element_states, tensions as tensions,
)
from liedyn.motion.discretize import discretize as discretize
from liedyn.motion.gradients import (
    ForwardDynamicsDerivatives as ForwardDynamicsDerivatives, RunDerivatives as RunDerivatives,
    RunGradient as RunGradient, RunVariation as RunVariation, differentiate_run as differentiate_run,
    forward_dynamics_derivatives as forward_dynamics_derivatives,
)
from liedyn.motion.simulation import (
    Adaptive as Adaptive, Baumgarte as Baumgarte, Event as Event, EventRecord as EventRecord,
    GeneralizedAlpha as GeneralizedAlpha, RealTimeLoop as RealTimeLoop, Sampled as Sampled, Stepper as Stepper,
    Trajectories as Trajectories, Trajectory as Trajectory, VirtualCoupler as VirtualCoupler, simulate as simulate,
    step as step,
)
from liedyn.tasks.identification import (
    BaseParameters as BaseParameters, Excitation as Excitation, Identification as Identification,
    IdentificationError as IdentificationError, IdentificationWarning as IdentificationWarning,
    base_parameters as base_parameters, dynamic_parameters as dynamic_parameters, excitation as excitation,
    identify as identify, low_pass as low_pass, measured_motion as measured_motion, regressor as regressor,
)
from liedyn.tasks.operating_points import (
    Branch as Branch, SpecialPoint as SpecialPoint, Trim as Trim, TrimError as TrimError,
    continuation as continuation, trim as trim,
)
from liedyn.tasks.optimal_motion import (
    MotionWarning as MotionWarning, NLPSolver as NLPSolver, OptimalMotion as OptimalMotion,
    OptimizationError as OptimizationError, PathFunction as PathFunction, clearance as clearance,
    optimize_motion as optimize_motion, separation as separation,
)
from liedyn.tasks.planning import (
    MPC as MPC, Cost as Cost, Limits as Limits, Phase as Phase, Plan as Plan, PlanError as PlanError,
    PlanWarning as PlanWarning, ddp as ddp,
)
from liedyn.tasks.reaching import (
    CenterOfMassTarget as CenterOfMassTarget, DirectionTarget as DirectionTarget,
    DistanceTarget as DistanceTarget,
    InfeasibleError as InfeasibleError, InverseKinematics as InverseKinematics,
    OrientationTarget as OrientationTarget, PointTarget as PointTarget, PoseTarget as PoseTarget,
    ReachError as ReachError, ReachWarning as ReachWarning, Target as Target,
    differential_inverse_kinematics as differential_inverse_kinematics, inverse_kinematics as inverse_kinematics,
)

# ---- modules

from liedyn import control as control
from liedyn import errors as errors
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

io = _files
linearization = _linear
__version__: str

__all__ = [
    "AccumulationError", "Adaptive", "BaseParameters", "Baumgarte", "Branch", "Builder", "CacheWarning",
    "CenterOfMassTarget", "ClosureError", "ConditionWarning", "ContactWarning", "ControllabilityError", "Cost",
    "Curvature",
    "DirectionTarget", "DistanceTarget", "Distances", "Event", "EventRecord", "Excitation", "ExtendedKalmanFilter",
    "ForwardDynamicsDerivatives",
    "GainSchedule", "GasSpring", "GeneralizedAlpha", "HybridController", "Identification", "IdentificationError",
    "IdentificationWarning", "InfeasibleError", "InputError", "InverseKinematics", "KalmanBucyFilter",
    "KalmanFilter", "LargeResult", "LiedynError", "Limits", "MPC", "ModelError", "ModelWarning", "MotionWarning",
    "Motor", "MovingHorizonEstimator", "NLPSolver", "OptimalMotion", "OptimizationError", "OrientationTarget",
    "OutputFeedback", "PIDC", "PathFunction", "Phase", "Plan", "PlanError", "PlanWarning", "PointTarget",
    "PolynomialSpring", "PoseTarget", "Pulley", "ReachError", "ReachWarning", "RealTimeLoop", "Regulator", "Robot",
    "RunDerivatives", "RunGradient", "RunVariation", "Sampled", "Sensitivity", "SimulationError",
    "SingularConfigurationError", "SpecialPoint", "Stepper", "SystemFeedback", "Target", "TrackingRegulator",
    "Trajectories", "Trajectory", "Trim", "TrimError", "VirtualCoupler", "aba", "aba_derivatives",
    "aba_second_derivatives",
    "actuator_matrix", "base_parameters", "body_jacobian", "body_jacobian_ddot", "body_jacobian_dot",
    "body_jacobian_dq", "bundled", "cable_lengths", "canonical_equations", "canonical_momenta", "center_of_mass",
    "centroidal_momentum_matrix", "centroidal_momentum_matrix_dot",
    "check_constraint", "check_feedback", "clearance", "close", "closure_error", "complete_velocity",
    "constraint_bias", "constraint_jacobian", "constraint_wrenches", "continuation", "controllability",
    "coriolis_matrix", "crba", "curvature",
    "ddp", "difference", "differential_inverse_kinematics", "differentiate_run", "discretize", "distances",
    "dkalman", "dlqr",
    "dynamic_parameters", "element_forces", "element_states", "excitation", "export_fmu", "export_html",
    "forward_dynamics",
    "forward_dynamics_derivatives", "forward_kinematics", "frequency_response", "from_control", "from_pinocchio",
    "gain_schedule", "generate_c", "identify", "inertial_parameters", "inertial_regressor", "integrate",
    "inverse_dynamics", "inverse_kinematics", "joint_wrenches", "kalman", "kinetic_energy",
    "linearize", "load", "load_mjcf", "load_sdf",
    "load_toml", "load_urdf", "low_pass", "lqr", "map_parameters", "map_states", "measured_motion", "modes",
    "momentum", "momentum_terms", "moving_horizon", "neutral", "open_results", "optimize_motion", "placement", "pose",
    "potential_energy", "random_configuration", "reduced", "regressor", "rnea", "rnea_derivatives",
    "rnea_second_derivatives", "save",
    "save_toml", "sensitivities", "separation", "simulate", "specialize", "step", "subtree", "tensions", "to_control",
    "to_pinocchio",
    "total_mass", "trim", "tvlqr", "underlying", "velocity_error", "velocity_from_momenta", "view",
    "virtual_coordinates", "virtual_jacobian", "with_inertial_parameters", "world_acceleration",
    "world_constraint_wrenches", "world_jacobian", "world_jacobian_dot", "world_joint_wrenches",
]

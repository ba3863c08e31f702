"""Robot dynamics on Lie groups: exact dynamics and exact minimal state-space models of any rigid mechanism.

    >>> import liedyn as ld
    >>> robot = ld.load("panda")
    >>> ld.crba(robot, robot.home).shape
    (7, 7)

Conventions, without switches: SI units and radians; twists are (omega, v) and wrenches (moment, force); everything at a
body is in that body's own frame; quaternions are (x, y, z, w); derivatives with respect to q live in the tangent space
at q, perturbed on the right. Every function of q, shape (nq,), also takes (..., nq).
"""
import importlib

from liedyn.files import bundled, load, load_mjcf, load_sdf, load_toml, load_urdf, save, save_toml
from liedyn.machine.errors import (
    AccumulationError, CacheWarning, ClosureError, ConditionWarning, ContactWarning, ControllabilityError, InputError,
    LiedynError, ModelError, ModelWarning, SimulationError, SingularConfigurationError,
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
from liedyn.model.calls.recursion import RECURSIONS
from liedyn.model.inertial_parameters import inertial_parameters, with_inertial_parameters
from liedyn.model.laws import GasSpring, Motor, PolynomialSpring

__version__ = "0.1.0"

# What the loops and other libraries need is imported when it is first asked for: open trees start without it.
_LAZY = {name: f"liedyn.{module}" for module, names in {
    "bridges.large": "LargeResult map_parameters map_states open_results",
    "bridges.specialization": "specialize",
    "control.constrained": "HybridController PIDC controllability inverse_dynamics",
    "control.estimation": "ExtendedKalmanFilter KalmanBucyFilter KalmanFilter MovingHorizonEstimator OutputFeedback "
        "dkalman kalman moving_horizon",
    "control.regulation": "GainSchedule Regulator TrackingRegulator dlqr gain_schedule lqr tvlqr",
    "control.systems": "SystemFeedback from_control to_control",
    "files.pinocchio_reader": "from_pinocchio",
    "files.pinocchio_writer": "to_pinocchio",
    "linear": "frequency_response linearize modes underlying",
    "linear.feedback": "check_feedback",
    "linear.sensitivity": "Sensitivity sensitivities",
    "look.viewer": "export_html view",
    "mechanics.constraints": "check_constraint close closure_error complete_velocity constraint_bias "
        "constraint_jacobian constraint_wrenches velocity_error virtual_coordinates virtual_jacobian "
        "world_constraint_wrenches",
    "mechanics.dynamics": "canonical_equations canonical_momenta forward_dynamics velocity_from_momenta",
    "mechanics.elements": "actuator_matrix element_forces element_states",
    "motion.discretize": "discretize",
    "motion.gradients": "ForwardDynamicsDerivatives RunDerivatives RunGradient RunVariation differentiate_run "
        "forward_dynamics_derivatives",
    "motion.simulation": "Adaptive Baumgarte Event EventRecord GeneralizedAlpha RealTimeLoop Sampled Stepper "
        "Trajectories Trajectory VirtualCoupler simulate step",
    "tasks.identification": "BaseParameters Excitation Identification IdentificationError IdentificationWarning "
        "base_parameters dynamic_parameters excitation identify low_pass measured_motion regressor",
    "tasks.operating_points": "Branch SpecialPoint Trim TrimError continuation trim",
    "tasks.optimal_motion": "MotionWarning NLPSolver OptimalMotion OptimizationError PathFunction clearance "
        "optimize_motion",
    "tasks.planning": "Cost Limits MPC Phase Plan PlanError PlanWarning ddp",
    "tasks.reaching": "CenterOfMassTarget DirectionTarget InfeasibleError InverseKinematics OrientationTarget "
        "PointTarget PoseTarget ReachError ReachWarning Target differential_inverse_kinematics inverse_kinematics",
}.items() for name in names.split()}
_MODULES = {name: f"liedyn.{module}" for name, module in {
    "animation": "look.animation", "constraints": "mechanics.constraints", "dynamics": "mechanics.dynamics",
    "io": "files", "kernels": "kernels", "lie": "lie", "linearization": "linear", "plotting": "look.plotting",
    "simulation": "motion.simulation", "specialization": "bridges.specialization", "symbolic": "model.symbolic",
}.items()}

__all__ = [
    "AccumulationError", "Builder", "CacheWarning", "ClosureError", "ConditionWarning", "ContactWarning",
    "ControllabilityError", "GasSpring", "InputError", "LiedynError", "ModelError", "ModelWarning", "Motor",
    "PolynomialSpring", "Robot", "SimulationError", "SingularConfigurationError", "bundled", "inertial_parameters",
    "load", "load_mjcf", "load_sdf", "load_toml", "load_urdf", "neutral", "placement", "random_configuration",
    "reduced", "save", "save_toml", "subtree", "total_mass", "with_inertial_parameters", *RECURSIONS, *_LAZY,
]


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _LAZY:
        raise AttributeError(f"module 'liedyn' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *_LAZY, *_MODULES])

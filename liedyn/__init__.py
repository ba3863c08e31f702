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

from liedyn.compiled.recursion import RECURSIONS
from liedyn.errors import (
    AccumulationError, CacheWarning, ClosureError, ConditionWarning, ContactWarning, ControllabilityError, InputError,
    LiedynError, ModelError, ModelWarning, SimulationError, SingularConfigurationError,
)
from liedyn.io import bundled, load, load_mjcf, load_sdf, load_toml, load_urdf, save, save_toml
from liedyn.model import Builder, Robot, placement, reduced, subtree
from liedyn.model.inertial_parameters import inertial_parameters, with_inertial_parameters
from liedyn.model.laws import GasSpring, Motor, PolynomialSpring
from liedyn.tree.aba import aba
from liedyn.tree.aba_derivatives import aba_derivatives
from liedyn.tree.centroidal import centroidal_momentum_matrix, centroidal_momentum_matrix_dot
from liedyn.tree.configuration import difference, integrate, neutral, random_configuration
from liedyn.tree.crba import crba
from liedyn.tree.energy import center_of_mass, kinetic_energy, momentum, potential_energy, total_mass
from liedyn.tree.forward_kinematics import forward_kinematics, pose
from liedyn.tree.jacobians import body_jacobian, body_jacobian_ddot, body_jacobian_dot, body_jacobian_dq
from liedyn.tree.momenta import momentum_terms
from liedyn.tree.regressor import inertial_regressor
from liedyn.tree.rnea import rnea
from liedyn.tree.rnea_derivatives import rnea_derivatives
from liedyn.tree.world_axes import world_acceleration, world_jacobian, world_jacobian_dot

__version__ = "0.1.0"

# What the loops and other libraries need is imported when it is first asked for: open trees start without it.
_LAZY = {name: f"liedyn.{module}" for module, names in {
    "constraints": "check_constraint close closure_error complete_velocity constraint_bias constraint_jacobian "
                   "constraint_wrenches velocity_error virtual_coordinates virtual_jacobian world_constraint_wrenches",
    "control": "HybridController PIDC controllability inverse_dynamics",
    "dynamics": "canonical_equations canonical_momenta forward_dynamics velocity_from_momenta",
    "planning": "Cost Limits MPC Phase Plan PlanError PlanWarning ddp",
    "operating_points": "Branch SpecialPoint Trim TrimError continuation trim",
    "optimal_motion": "MotionWarning NLPSolver OptimalMotion OptimizationError PathFunction clearance optimize_motion",
    "reaching": "CenterOfMassTarget DirectionTarget InfeasibleError InverseKinematics OrientationTarget PointTarget "
                "PoseTarget ReachError ReachWarning Target differential_inverse_kinematics inverse_kinematics",
    "regulation": "GainSchedule Regulator TrackingRegulator dlqr gain_schedule lqr tvlqr",
    "elements": "actuator_matrix element_forces element_states",
    "estimation": "ExtendedKalmanFilter KalmanBucyFilter KalmanFilter OutputFeedback dkalman kalman",
    "feedback": "check_feedback",
    "gradients": "ForwardDynamicsDerivatives RunDerivatives RunGradient RunVariation differentiate_run "
                 "forward_dynamics_derivatives",
    "identification": "BaseParameters Excitation Identification IdentificationError IdentificationWarning "
                      "base_parameters dynamic_parameters excitation identify low_pass measured_motion regressor",
    "io.pinocchio_reader": "from_pinocchio",
    "io.pinocchio_writer": "to_pinocchio",
    "large": "LargeResult map_parameters map_states open_results",
    "linearization": "discretize frequency_response linearize modes underlying",
    "sensitivity": "Sensitivity sensitivities",
    "simulation": "Adaptive Baumgarte Event EventRecord GeneralizedAlpha RealTimeLoop Sampled Stepper "
                  "Trajectories Trajectory VirtualCoupler simulate step",
    "specialization": "specialize",
    "systems": "SystemFeedback from_control to_control",
    "viewer": "export_html view",
}.items() for name in names.split()}
_MODULES = ("animation", "constraints", "control", "dynamics", "io", "kernels", "lie", "linearization", "plotting",
            "simulation", "specialization", "symbolic")

__all__ = [
    "AccumulationError", "Builder", "CacheWarning", "ClosureError", "ConditionWarning", "ContactWarning",
    "ControllabilityError", "GasSpring", "InputError", "LiedynError", "ModelError", "ModelWarning", "Motor",
    "PolynomialSpring", "Robot", "SimulationError", "SingularConfigurationError", "bundled", "inertial_parameters",
    "load", "load_mjcf", "load_sdf", "load_toml", "load_urdf", "neutral", "placement", "random_configuration",
    "reduced", "save", "save_toml", "subtree", "total_mass", "with_inertial_parameters", *RECURSIONS, *_LAZY,
]


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"liedyn.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'liedyn' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *_LAZY, *_MODULES])

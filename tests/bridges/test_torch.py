"""Functions for PyTorch against the library's own numbers; skipped where PyTorch is not installed."""
import subprocess
import sys

import numpy as np
import pytest
from mechanisms import MOVING_KINDS, random_tree

import liedyn as ld

torch = pytest.importorskip("torch", reason="PyTorch is not installed: its tests need a CPU build of 200 MB")

import comparison  # noqa: E402

import liedyn.torch as bridge  # noqa: E402
from liedyn.bridges.differentiable import operations  # noqa: E402

PANDA = ld.load("panda")
FIVE_BAR = ld.load("five_bar")
TREE = random_tree(np.random.default_rng(3), MOVING_KINDS).build()
REST = torch.zeros(7, dtype=torch.float64)


def off(actual, expected):
    """How far apart a tensor and an array or tensor are."""
    return comparison.off(actual.detach().numpy(), np.asarray(expected))


def states(robot, count=5, seed=0):
    rng = np.random.default_rng(seed)
    arrays = ld.random_configuration(robot, rng, count), *rng.normal(size=(2, count, robot.nv))
    return [torch.from_numpy(x) for x in arrays]


@pytest.mark.parametrize("way", [lambda f: f, torch.func.vmap], ids=["leading axes", "vmap"])
def test_values(way):
    q, v, x = states(PANDA)
    for function, expected in (
            (lambda q, v, x: bridge.rnea(PANDA, q, v, x), ld.rnea(PANDA, q, v, x)),
            (lambda q, v, x: bridge.forward_dynamics(PANDA, q, v, x).a, ld.aba(PANDA, q, v, x)),
            (lambda q, v, x: bridge.forward_kinematics(PANDA, q), ld.forward_kinematics(PANDA, q)),
            (lambda q, v, x: bridge.pose(PANDA, q, "panda_hand"), ld.pose(PANDA, q, "panda_hand"))):
        assert off(way(function)(q, v, x), expected) < 1e-14


@pytest.mark.parametrize("many", [False, True], ids=["one", "vmap"])
@pytest.mark.parametrize("direction", [torch.func.jacfwd, torch.func.jacrev], ids=["forward", "reverse"])
def test_jacobians_are_the_librarys(direction, many):
    q, v, x = states(PANDA) if many else (each[0] for each in states(PANDA))
    for function, expected in (
            (lambda *x: bridge.rnea(PANDA, *x), ld.rnea_derivatives(PANDA, q, v, x)),
            (lambda *x: bridge.forward_dynamics(PANDA, *x).a, ld.aba_derivatives(PANDA, q, v, x))):
        found = direction(function, argnums=(0, 1, 2))
        for actual, each in zip((torch.func.vmap(found) if many else found)(q, v, x), expected):
            assert off(actual, each) < 1e-12


TWICE = {"hessian": torch.func.hessian, "reverse twice": lambda f: torch.func.jacrev(torch.func.jacrev(f)),
         "reverse of forward": lambda f: torch.func.jacrev(torch.func.jacfwd(f)),
         "vmap": lambda f: lambda q: torch.func.vmap(torch.func.jacfwd(torch.func.jacrev(f)))(torch.stack([q, q]))[1],
         "autograd": lambda f: lambda q: torch.stack([torch.autograd.functional.hessian(
             lambda q, i=i: f(q)[i], q) for i in range(7)])}


@pytest.mark.parametrize("way", TWICE)
def test_second_derivatives(way):
    q, v, x = (each[0] for each in states(PANDA))
    for function, expected in (
            (lambda q: bridge.rnea(PANDA, q, v, x), ld.rnea_second_derivatives(PANDA, q, v, x)[0]),
            (lambda q: bridge.forward_dynamics(PANDA, q, v, x).a, ld.aba_second_derivatives(PANDA, q, v, x)[0])):
        assert off(TWICE[way](function)(q), expected) < 1e-11


def test_second_derivatives_of_a_loop():
    q, (v, tau) = torch.tensor(FIVE_BAR.home), torch.tensor(np.random.default_rng(5).normal(size=(2, 4)))
    found = torch.func.hessian(lambda q: bridge.forward_dynamics(FIVE_BAR, q, v, tau).a)(q)
    expected = operations.forward_dynamics(FIVE_BAR).second(*(x.numpy() for x in (q, v, tau)))[0]
    assert off(found, expected) < 1e-12 and np.abs(expected).max() > 1.0


def test_gradgradcheck():
    """PyTorch's own differences of gradients, with quaternions and batches."""
    q, v, x = (each.requires_grad_() for each in states(TREE, 2))
    assert torch.autograd.gradgradcheck(lambda *x: bridge.rnea(TREE, *x), (q, v, x), atol=1e-4)
    assert torch.autograd.gradgradcheck(lambda q: bridge.pose(TREE, q, TREE.body_names[-1]), (q,), atol=1e-4)


def test_gradcheck():
    """PyTorch's own differences, forwards and in reverse, for batches of seeds too."""
    q, v, x = (each.requires_grad_() for each in states(PANDA, 2))
    assert torch.autograd.gradcheck(lambda *x: bridge.rnea(PANDA, *x), (q, v, x), check_forward_ad=True,
                                    check_batched_grad=True, check_batched_forward_grad=True)
    q, v, x = (each[0].requires_grad_() for each in states(TREE))
    assert torch.autograd.gradcheck(lambda *x: bridge.forward_dynamics(TREE, *x).a / 1e3, (q, v, x),
                                    check_forward_ad=True)
    assert torch.autograd.gradcheck(lambda q: bridge.forward_kinematics(TREE, q), (q,))
    assert torch.autograd.gradcheck(lambda q: bridge.pose(TREE, q, TREE.body_names[-1]), (q,))


def five_bars(count):
    """States on the constraints, and forces."""
    rng = np.random.default_rng(7)
    q = ld.close(FIVE_BAR, FIVE_BAR.home, q1=FIVE_BAR.home[0] + rng.uniform(-0.2, 0.2, count))
    v = ld.complete_velocity(FIVE_BAR, q, {"q1": rng.normal(size=count), "q2": 0.3})
    return [torch.from_numpy(x) for x in (q, v, rng.normal(size=(count, 4)))]


@pytest.mark.parametrize("direction", [torch.func.jacfwd, torch.func.jacrev], ids=["forward", "reverse"])
def test_closed_loops(direction):
    """Accelerations and multipliers of a batch."""
    q, v, tau = five_bars(4)
    expected = ld.forward_dynamics_derivatives(FIVE_BAR, q, v, tau)
    found = bridge.forward_dynamics(FIVE_BAR, q, v, tau)
    assert off(found.a, expected.a) < 1e-14 and off(found.lam, expected.lam) < 1e-14
    of = torch.func.vmap(direction(lambda *x: bridge.forward_dynamics(FIVE_BAR, *x)[:], argnums=(0, 1, 2)))(q, v, tau)
    for actual, name in zip((*of[0], *of[1]), ("a_q", "a_v", "a_tau", "lam_q", "lam_v", "lam_tau")):
        assert off(actual, getattr(expected, name)) < 1e-12


def test_the_gradient_of_a_run():
    """By its start and its forces: against the adjoint of the library's own run; of a batch of runs, too."""
    q, v, _ = five_bars(2)
    given = q, v, torch.from_numpy(np.random.default_rng(1).normal(size=(2, 20, 4)))
    for x in given:
        x.requires_grad_()
    run = bridge.rollout(FIVE_BAR, *given, 0.01)
    ((run.q[:, -1] - 1.0) ** 2).sum().add((run.v ** 2).sum() / 10).add((given[2] ** 2).sum() / 100).backward()
    for b in range(2):
        at = [x[b].detach().numpy() for x in given]
        own = ld.differentiate_run(FIVE_BAR, *at[:2], 0.2, tau=at[2], dt=0.01)
        assert off(run.q[b], own.trajectory.q) < 1e-13
        weights = np.zeros((21, 4))
        weights[-1] = 2 * (own.trajectory.q[-1] - 1.0)
        expected = own.adjoint(weights, own.trajectory.v / 5)
        for x, each in zip(given, (expected.q0, expected.v0, expected.inputs + at[2] / 50)):
            assert off(x.grad[b], each) < 1e-12


def test_floating_robots_step():
    """In numbers of quaternions: PyTorch's differences, forwards and in reverse, and batches of seeds."""
    robot = random_tree(np.random.default_rng(5), ["free", "revolute", "spherical"]).build()
    q, v, x = (each[0].requires_grad_() for each in states(robot))
    for function, forces in ((bridge.step, x), (bridge.rollout, x.detach().expand(3, -1).clone().requires_grad_())):
        assert torch.autograd.gradcheck(lambda *x, f=function: tuple(f(robot, *x, 0.01)), (q, v, forces),
                                        check_forward_ad=True)
        reverse, forward = (direction(lambda *x, f=function: f(robot, *x, 0.01).q, argnums=(0, 1, 2))(q, v, forces)
                            for direction in (torch.func.jacrev, torch.func.jacfwd))
        for a, b in zip(reverse, forward):
            assert off(a, b.detach()) < 1e-13


def test_inertial_parameters():
    """Those of all bodies as arguments: PyTorch's differences, where all bodies stay such that can exist."""
    q, v, tau = (each[0] for each in five_bars(1))
    scale = torch.ones(4, 1, dtype=torch.float64, requires_grad=True)[:FIVE_BAR.nbodies]
    pi = torch.from_numpy(ld.inertial_parameters(FIVE_BAR))
    for function in (lambda s: bridge.rnea(FIVE_BAR, q, v, tau, s * pi),
                     lambda s: bridge.forward_dynamics(FIVE_BAR, q, v, tau, s * pi)[:],
                     lambda s: bridge.rollout(FIVE_BAR, q, v, tau.expand(3, 4), 0.01, s * pi)[:]):
        assert torch.autograd.gradcheck(function, (scale.detach().requires_grad_(),), check_forward_ad=True)


def test_vmap_over_some_arguments_only():
    q, v, x = states(PANDA)
    found = torch.func.vmap(lambda q, x: bridge.rnea(PANDA, q, v[0], x), in_dims=(0, 1))(q, x.T)
    assert off(found, ld.rnea(PANDA, q, v[0], x)) < 1e-14


def test_precision_is_that_of_the_arguments():
    q = torch.tensor(PANDA.home, dtype=torch.float32, requires_grad=True)
    found = bridge.rnea(PANDA, q, [0.0] * 7, [0] * 7)
    assert found.dtype == torch.float32
    expected = ld.rnea(PANDA, q.detach().double().numpy(), np.zeros(7), np.zeros(7))
    assert off(found, expected) < 1e-7  # rounding of single precision
    found.sum().backward()
    assert q.grad.dtype == torch.float32
    assert bridge.rnea(PANDA, q, REST, REST).dtype == torch.float64
    assert bridge.rnea(PANDA, PANDA.home, REST, REST).dtype == torch.float64
    assert bridge.rnea(PANDA, PANDA.home, [0] * 7, [0] * 7).dtype == torch.float64


def test_what_is_wrong_is_said():
    q = torch.tensor(PANDA.home)
    for given, said in (((q[:6], REST, REST), r"q must have shape \(..., 7\), got \(6,\)"),
                        ((q, "rest", REST), "v must be numbers"), ((q, REST, 1j * REST), "a must be numbers"),
                        ((q.expand(3, 7), REST.expand(2, 7), REST), "do not broadcast"),
                        ((np.nan * q, REST, REST), "q is not finite"), ((q.to("meta"), REST, REST), "q is on meta")):
        with pytest.raises(ld.InputError, match=said):
            bridge.rnea(PANDA, *given)
    with pytest.raises(ld.InputError, match="expected a Robot"):
        bridge.rnea("panda", q, REST, REST)
    for hessian in (torch.func.hessian, lambda f: lambda q: torch.autograd.functional.hessian(f, q)):
        with pytest.raises(ld.LiedynError, match="no second derivatives"):
            hessian(lambda tau: bridge.step(PANDA, q, REST, tau, 0.01).v[0])(REST)
    with pytest.raises(ld.LiedynError, match="forward twice"):  # PyTorch would make zeros of it
        torch.func.jacfwd(torch.func.jacfwd(lambda q: bridge.rnea(PANDA, q, REST, REST)[0]))(q)
    with pytest.raises(ld.LiedynError, match="no third derivatives: Rnea"):
        torch.func.jacrev(torch.func.hessian(lambda q: bridge.rnea(PANDA, q, REST, REST)[0]))(q)


def test_without_pytorch():
    program = "import sys; sys.modules['torch'] = None; import liedyn.torch"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "LiedynError" in done.stderr and "pip install 'liedyn[torch]'" in done.stderr

"""Long calls, one after the other, in a process that its parent interrupts: ``python interrupts.py NAME ...``.

For each it prints ``begins NAME``, and after the interrupt ``ended NAME CPU KEPT``: the processor's time that the
process has used so far, and how much of the result the exception carries.
"""
import signal
import sys
import time
import warnings

import numpy as np

import liedyn as ld

BAR, REST = ld.load("five_bar"), np.zeros(4)
ROWS = ld.close(BAR, BAR.home + 1e-3 * np.random.default_rng(0).standard_normal((10_000, 4)))


def arm():
    builder = ld.Builder("arm")
    for k in range(3):
        builder.body(f"b{k}", 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
        builder.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "ground", f"b{k}", placement=(float(k > 0), 0.0, 0.0),
                      limits=(-2.0, 2.0))
    return builder.build()


def pendulum():
    builder = ld.Builder("pendulum")
    builder.body("b", 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("j", "revolute", "ground", "b", axis=(0.0, 1.0, 0.0))
    return builder.build()


ARM = arm()
FAR = ld.PoseTarget("b2", np.diag([1.0, -1.0, -1.0, 1.0]) + np.eye(4, k=3) * 9.0)


def stepped(count):
    stepper = ld.Stepper(BAR, BAR.home, REST)
    try:
        stepper.advance(count)
    except KeyboardInterrupt as stop:
        stop.kept = round(stepper.t / stepper.dt)
        raise


def tau(t, q, v):
    return -v


def simulated(t_final, robot=BAR, **options):
    return ld.simulate(robot, robot.home, np.zeros(robot.nv), t_final, progress=False, **options)


def starts(t_final, **options):
    return ld.simulate(BAR, np.tile(BAR.home, (12, 1)), REST, t_final, progress=False, record=100, **options)


def planned(steps):
    return ld.ddp(ARM, [0.0, 0.1, 0.0], np.zeros(3), ld.Cost(Q=1e-3, R=1e-3, terminal_Q=100.0, q=[3.0, -2.0, 1.0]),
                  steps, 20.0 / steps)


EVENT = ld.Event("never", lambda t, q, v: 1.0)
CALLS = {
    "simulate": (simulated, 0.01, 1e5),
    "simulate with a Python function": (lambda end: simulated(end, tau=tau), 0.01, 1e4),
    "simulate, adaptive": (lambda end: simulated(end, method="DOP853"), 0.01, 1e5),
    "simulate side by side": (starts, 0.1, 500.0),
    "simulate in threads": (lambda end: starts(end, events=EVENT), 0.1, 500.0),
    "Stepper.advance": (stepped, 100, 10 ** 8),
    "inverse_kinematics": (lambda rows: ld.inverse_kinematics(
        ARM, FAR, q0=np.zeros((rows, 3)), unreached="ignore"), 2, 20_000),
    "close": (lambda rows: ld.close(BAR, np.tile(ROWS[:rows], (rows // 50 + 1, 1)) + 0.1), 10, 10_000),
    "linearize": (lambda rows: ld.linearize(
        BAR, np.tile(ROWS[:rows], (20, 1)), REST, REST, independent=("q1", "q2")), 10, 10_000),
    "ddp": (planned, 10, 30_000),
    "optimize_motion": (lambda intervals: ld.optimize_motion(
        ARM, [0.0, 0.0, 0.0], [2.0, 1.0, -1.0], intervals=intervals), 2, 1000),
    "excitation": (lambda iterations: ld.excitation(ARM, speed=4.0, iterations=iterations), 1, 10_000),
}


def size_kept(stop):
    runs = getattr(stop, "trajectories", None)
    for name in "trajectory", "plan":
        if hasattr(stop, name):
            return len(getattr(stop, name).t)
    return getattr(stop, "kept", 0) if runs is None else runs[0].t.size


def main(names):
    warnings.simplefilter("ignore")
    # who was started in the background of a shell inherits that interrupts are ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in names:
        call, short, long = CALLS[name]
        call(short)  # compiles
        try:
            print(f"begins {name}", flush=True)
            call(long)
            time.sleep(60.0)  # it was over too early
        except KeyboardInterrupt as stop:
            print(f"ended {name} {time.process_time()} {size_kept(stop)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

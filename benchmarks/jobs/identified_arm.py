"""Identify an arm with a load from noisy torques, 2500 samples."""
import numpy as np

import liedyn as ld

arm = ld.load("ur5")
b = ld.Builder.of(arm)
b.change("body", "wrist_3_link", mass=1.7)
true = b.build()
motion = ld.excitation(arm, duration=5.0)
q, v, a = motion.at(np.arange(0.0, motion.duration, 0.002))
tau = ld.rnea(true, q, v, a) + 0.1 * np.random.default_rng(0).normal(size=q.shape)
found = ld.identify(arm, q, v, a, tau)
print(found)

"""A regulator for an arm without loops."""
import liedyn as ld

arm = ld.load("panda")
regulator = ld.lqr(arm, arm.home, Q=100.0, R=1e-4)
print(regulator.eigenvalues.round(2))

"""Motion in time: steps, runs with events and contacts, discrete models of steps, derivatives of runs.

In: a robot, a state, inputs over time; out: trajectories, and the derivatives of what they end in.
"""

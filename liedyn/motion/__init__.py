"""Motion in time: steps, runs with events and contacts, discrete models of steps, derivatives of runs.

Input: a robot, a state, and inputs over time. Output: trajectories, and derivatives of functions of them.
"""

"""Unilateral contact with Coulomb friction: what accelerations, impacts and time steps have in common.

A one-sided constraint has a gap that must not become negative; a closed one pushes with a normal force that must not
become negative, and rubs with a force inside the friction disk. `complementarity` solves these conditions for all
contacts together, by a path through the inside of the friction cones (`interior_point`). `problem` brings accelerations
and impacts to their form, `state` finds out which contacts of a state are open, slide or stick, and `impact` lets them
collide.
"""

"""Unilateral contacts with Coulomb friction, for accelerations, impacts and time steps.

A one-sided constraint has a gap that must not become negative; a closed one has a normal force that must not become
negative, and a friction force inside the friction disk. `complementarity` solves these conditions for all contacts
together, by a path through the interior of the friction cones (`cone_interior_point`). `contact_problem` brings
accelerations and impacts to their form, `contact_state` decides which contacts of a state are open, slide or stick, and
`impact` computes collisions.
"""

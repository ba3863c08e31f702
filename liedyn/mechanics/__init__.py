"""Forces and accelerations of a robot at one state, and how they vary.

`tree` has the recursions of open trees, `constraints` what closes loops and the elimination of dependent velocities,
`elements` springs and other forces, `contact` impulses and the choice of contact modes, `dynamics` the formulations.
In: a packed model and (q, v, tau); out: forces, accelerations, multipliers, and their derivatives. Time is not known
here.
"""

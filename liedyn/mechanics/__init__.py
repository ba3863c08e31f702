"""Forces and accelerations of a robot at one state, and their derivatives.

`tree` has the recursions on open trees, `constraints` the loop closures and the elimination of dependent velocities,
`elements` springs and other forces, `contact` impulses and the choice of contact modes, `dynamics` the formulations.
In: a packed model and (q, v, tau). Out: forces, accelerations, multipliers, and their derivatives. Nothing here depends
on earlier or later states.
"""

"""What is looked for: configurations that reach, operating points, plans, optimal motions, parameters of measured
motions.

In: a robot and what is wanted; out: a result that says how well it was found, or an error that names why not.
"""

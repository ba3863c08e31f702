"""Tasks: inverse kinematics, operating points, plans, optimal motions, identification of parameters.

Input: a robot and what is wanted. Output: a result with measures of its quality, or an error that names the reason.
"""

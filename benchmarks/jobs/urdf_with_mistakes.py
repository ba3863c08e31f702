"""Load a URDF with a mistake in it.

Each of these mistakes is an error, or a warning, that names it.
"""
import warnings

import liedyn as ld

LINK = ('<link name="{name}"><inertial><origin xyz="0 0 0.2"/><mass value="{mass}"/><inertia ixx="0.03" iyy="0.03" '
        'izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>')
JOINT = ('<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="0 0 0.4"/>'
         '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="3"/></joint>')
GOOD = ('<robot name="arm"><link name="base"/>' + LINK.format(name="upper", mass=2) + LINK.format(name="lower", mass=1)
        + JOINT.format(name="shoulder", parent="base", child="upper")
        + JOINT.format(name="elbow", parent="upper", child="lower") + "</robot>")
MISTAKES = {
    "unknown link": ('<parent link="upper"/>', '<parent link="uper"/>'), "no such type": ('"revolute"', '"revolut"'),
    "misspelt element": ("<origin xyz", "<orgin xyz"), "commas": ('"0 0 0.4"', '"0,0,0.4"'),
    "two numbers": ('"0 0 0.4"', '"0 0.4"'), "negative mass": ('"1"', '"-1"'), "no axis": ('"0 1 0"', '"0 0 0"'),
    "limits swapped": ('lower="-2" upper="2"', 'lower="2" upper="-2"'), "joint twice": ('"elbow"', '"shoulder"'),
    "link twice": ('link name="lower"', 'link name="upper"'), "broken": ("</robot>", ""),
    "impossible inertia": ('izz="0.002"', 'izz="0.2"'), "words": ('value="1"', 'value="1 kg"'),
    "child of itself": ('<parent link="upper"/>', '<parent link="lower"/>'),
    "no name": ('<joint name="elbow"', "<joint"), "not a number": ('value="1"', 'value="nan"'),
    "upper case": ("<joint", "<Joint")}

for name, (right, wrong) in MISTAKES.items():
    assert right in GOOD, name
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            ld.load(GOOD.replace(right, wrong, 1))
            said = [str(each.message) for each in told]
        except ld.LiedynError as error:
            said = [str(error)]
    print(f"{name}: {' | '.join(said) or 'nothing is said'}")

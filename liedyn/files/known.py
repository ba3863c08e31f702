"""Known elements and attributes of a format, and warnings for others in a file.

A format is a table of lines ``element: attributes | elements within it``; one function compares a file with it.
Elements without effect on a robot (textures, sensors, controllers) are skipped with all that they contain; known
elements that are not used are reported by what they are; unknown ones with the most similar known name.
"""
from collections import defaultdict
from typing import NamedTuple
from xml.etree.ElementTree import QName

from liedyn.machine.errors import cut, near_names, shown

PREFIXES = {"http://drake.mit.edu": "drake", "http://www.w3.org/2001/XMLSchema-instance": "xsi",
            "http://www.w3.org/XML/1998/namespace": "xml"}
"""Usual prefixes of namespaces in files."""
MOST = 12
"""Largest number of names in a warning, which then gives their total number."""


class Format(NamedTuple):
    """A format of files.

    Attributes
    ----------
    name : str
    elements : dict
        By element name, the names of its attributes and of the elements within it.
    passed : frozenset
        Names of elements and attributes without effect on a robot, which are skipped with all that they contain.
    left_out : dict
        By name of an element or attribute that is known but not used, a description.
    """

    name: str
    elements: dict
    passed: frozenset
    left_out: dict


def format_of(name, lines, passed, left_out):
    """A `Format` from its lines."""
    elements = {}
    for line in lines.strip().splitlines():
        element, _, rest = line.partition(":")
        attributes, _, within = rest.partition("|")
        elements[element.strip()] = attributes.split(), within.split()
    return Format(name, elements, frozenset(passed.split()), left_out)


def strangers(form, *roots):
    """Names of unused and unknown parts of the XML elements `roots`: a list for each description."""
    found, left = defaultdict(list), [(root, root) for root in reversed(roots)]
    while left:
        xml, owner = left.pop()
        attributes, within = form.elements[xml.tag]
        owner = xml if xml.get("name") else owner
        for name in map(_called, xml.attrib):
            if name not in attributes:
                _note(form, found, f"attributes that {form.name} does not have", name, attributes, _place(xml, owner))
        inner = []
        for each in xml:
            if not isinstance(each.tag, str):  # a comment
                continue
            name = _called(each.tag)
            if name in form.passed:  # within transmissions, Drake has inertias of rotors
                for part in map(_called, (part.tag for part in each.iter() if isinstance(part.tag, str))):
                    if part.startswith("drake:"):
                        _note(form, found, "", part, (), f"{cut(name)} {shown(each.get('name', ''))}")
            elif name not in within:
                _note(form, found, f"elements that {form.name} does not have", name, within, _place(xml, owner))
            elif name in form.elements:
                inner.append((each, owner))
        left += reversed(inner)
    return found


def told(texts):
    """Some texts for a message: the first ones, and their total number."""
    return "; ".join(texts[:MOST]) + (f"; ... ({len(texts)} in all)" if len(texts) > MOST else "")


def _called(name):
    """A name with the usual prefix of its namespace."""
    if "}" not in name:  # in none, as nearly all
        return name
    qualified = QName(name).text
    uri, brace, local = qualified.removeprefix("{").rpartition("}")
    return f"{PREFIXES[uri]}:{local}" if uri in PREFIXES else qualified if brace else local


def _place(xml, owner):
    """Where an element is, for a message; `owner` is the one around it that has a name, or the root."""
    name = owner.get("name")
    named = f"{cut(owner.tag)} {shown(name)}" if name else owner.tag
    return f"<{cut(xml.tag)}> of {named}" if xml.get("name") is None else named


def _note(form, found, what, name, known, place):
    """Note an unused or unknown name."""
    if name in form.passed or name.startswith(("xsi:", "xml:")):
        return
    known_as = "what Drake adds" if name.startswith("drake:") else form.left_out.get(name)
    near = "" if known_as else "".join(f", did you mean {shown(each)}?" for each in near_names(name, known, 1, 0.6))
    found[known_as or what].append(f"{shown(name)} in {place}{near}")


URDF = format_of("URDF", """
robot: name version | link joint material loop coupling constraint
link: name type | inertial visual collision
inertial: | origin mass inertia
mass: value |
inertia: ixx ixy ixz iyy iyz izz |
origin: xyz rpy quat_xyzw |
visual: name | origin geometry material
collision: name group | origin geometry
geometry: | box sphere cylinder capsule mesh
box: size |
sphere: radius |
cylinder: radius length |
capsule: radius length |
mesh: filename scale |
material: name | color
color: rgba |
joint: name type independent | parent child origin axis limit dynamics joint_properties mimic safety_controller
parent: link |
child: link |
axis: xyz |
limit: lower upper velocity effort |
dynamics: damping friction |
joint_properties: damping friction |
mimic: joint multiplier offset |
safety_controller: soft_lower_limit soft_upper_limit k_position k_velocity |
loop: name type | predecessor successor axis axis2 pitch
predecessor: link | origin
successor: link | origin
axis2: xyz |
pitch: value |
coupling: name type | predecessor successor ratio
ratio: value |
constraint: name type | parent child parent_origin child_origin parent_axis child_axis
parent_origin: xyz rpy quat_xyzw |
child_origin: xyz rpy quat_xyzw |
parent_axis: xyz |
child_axis: xyz |
""", "transmission gazebo sensor ros2_control texture calibration contact contact_coefficients verbose audio_source "
    "self_collision_checking drake:proximity_properties drake:illustration_properties drake:perception_properties "
    "drake:collision_filter_group drake:accepting_renderer drake:diffuse_map drake:declare_convex",
    {"acceleration": "limits of accelerations", "deceleration": "limits of accelerations",
     "jerk": "limits of accelerations"})

_POSE = "frame relative_to rotation_format degrees"
SDF = format_of("SDFormat", f"""
sdf: version | world model
world: name | model joint frame gravity
model: name canonical_link placement_frame | static model frame pose link joint include
frame: name attached_to | pose
pose: {_POSE} |
link: name | gravity kinematic velocity_decay pose inertial collision visual
gravity: |
kinematic: |
static: |
velocity_decay: | linear angular
linear: |
angular: |
inertial: auto | mass pose inertia fluid_added_mass
mass: |
inertia: | ixx ixy ixz iyy iyz izz
ixx: |
ixy: |
ixz: |
iyy: |
iyz: |
izz: |
collision: name | pose geometry
visual: name | pose geometry
geometry: | empty box capsule cone cylinder ellipsoid heightmap image mesh plane polyline sphere
box: | size
capsule: | radius length
cone: | radius length
cylinder: | radius length
ellipsoid: | radii
sphere: | radius
plane: | normal size
mesh: | uri scale
size: |
radius: |
length: |
radii: |
normal: |
uri: |
scale: |
joint: name type | parent child pose axis axis2 gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch
parent: |
child: |
gearbox_ratio: |
gearbox_reference_body: |
thread_pitch: |
screw_thread_pitch: |
axis: | xyz use_parent_model_frame initial_position dynamics limit mimic
axis2: | xyz use_parent_model_frame initial_position dynamics limit mimic
xyz: expressed_in |
use_parent_model_frame: |
initial_position: |
dynamics: | damping friction spring_reference spring_stiffness
damping: |
friction: |
spring_reference: |
spring_stiffness: |
limit: | lower upper effort velocity
lower: |
upper: |
effort: |
velocity: |
mimic: joint axis | multiplier offset reference
multiplier: |
offset: |
reference: |
""", "sensor plugin surface material physics gui light actor road scene atmosphere magnetic_field wind audio state "
    "population spherical_coordinates include self_collide allow_auto_disable enable_wind must_be_base_link gripper "
    "projector audio_sink audio_source battery particle_emitter laser_retro max_contacts density auto_inertia_params "
    "cast_shadows transparency visibility_flags meta submesh optimization convex_decomposition stiffness dissipation "
    "fluid_added_mass heightmap image polyline cone drake:proximity_properties drake:illustration_properties "
    "drake:perception_properties drake:collision_filter_group drake:accepting_renderer drake:diffuse_map "
    "drake:declare_convex drake:hydroelastic_modulus", {})

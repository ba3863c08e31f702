"""SDFormat files for tests: links and joints as text."""

from liedyn.files import load_sdf

AXES = "<axis><xyz>1 2 2</xyz></axis><axis2><xyz>2 1 -2</xyz></axis2>"
INERTIAL = """<inertial><pose>0.1 -0.2 0.3 0.4 0 0</pose><mass>2</mass>
  <inertia><ixx>1.2</ixx><ixy>0.1</ixy><ixz>-0.2</ixz><iyy>1.5</iyy><iyz>0.3</iyz><izz>1.9</izz></inertia></inertial>"""


def link(name, pose="", attributes="", extra=""):
    return f'<link name="{name}"><pose {attributes}>{pose}</pose>{INERTIAL}{extra}</link>'


def joint(name, kind, parent, child, inside="<axis><xyz>0 0 1</xyz></axis>", pose="", attributes=""):
    return f"""<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>
      <pose {attributes}>{pose}</pose>{inside}</joint>"""


def load(tmp_path, *parts, version="1.11", attributes="", name="thing.sdf", **options):
    path = tmp_path / name
    path.write_text(f'<sdf version="{version}"><model name="thing" {attributes}>{"".join(parts)}</model></sdf>')
    return load_sdf(path, **options)


TRAIN = (link("box") + link("sun", "0.1 0 0 0 0 0") + link("planet", "0.3 0 0 0 0 0")
         + joint("s", "revolute", "box", "sun") + joint("hold", "fixed", "world", "box"))

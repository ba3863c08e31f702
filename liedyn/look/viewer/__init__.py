"""Looking at robots in the browser (``pip install 'liedyn[view]'``): a page that moves, and pages to keep.

`scene` says what is drawn where, `posture` how sliders and switches move a mechanism; neither knows of browsers.
`meshes` makes triangles, `stage` puts them and arrows on a viser server, `page` has the controls, `player` moves them
through a trajectory or a mode, `html` writes pages that need no server.
"""
from liedyn.look.viewer.html import export_html
from liedyn.look.viewer.page import view

__all__ = ["export_html", "view"]

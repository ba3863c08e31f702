"""Robots in the browser (``pip install 'liedyn[view]'``): interactive pages, and pages to be saved.

`scene` determines arrows and the camera, `posture` the effect of sliders and switches; neither depends on a
browser. `stage` puts them and arrows on a viser server, `page` has the controls, `player`
plays a trajectory or a mode, and writes pages that need no server.
"""
from liedyn.look.viewer.player import export_html
from liedyn.look.viewer.page import view

__all__ = ["export_html", "view"]

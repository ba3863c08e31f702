"""How Sphinx makes the site: `python -m sphinx -W docs docs/_build/html` (extra `docs`). No network is needed."""
import os
import shutil
import sys
from pathlib import Path

import liedyn

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ["LIEDYN_QUIET"] = "1"
os.environ["MATPLOTLIBRC"] = str(HERE / "_static" / "matplotlibrc")  # in the processes that run the pages, too
shutil.copytree(HERE.parent / "notebooks", HERE / "notebooks", dirs_exist_ok=True)  # sources must be in this folder

project = "liedyn"
copyright = "the liedyn developers, MIT licence"
version = release = liedyn.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_nb", "sphinx_design",
              "sphinx_copybutton", "mathml", "tracebacks"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
# additions to docstrings in CONTRIBUTING are no Python on their own
suppress_warnings = ["misc.highlighting_failure"]
nitpicky = False

# pages are run when they have changed; the notebooks carry their results, which a test of their own keeps up to date
nb_execution_mode = "cache"
nb_execution_in_temp = True  # pages write files
nb_execution_cache_path = str(HERE / "_build" / "executed")
nb_execution_excludepatterns = ["notebooks/*"]
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # a first run compiles kernels
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "liedyn"
html_static_path = ["_static"]
html_css_files = ["liedyn.css"]
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "start", "gallery", "genindex", "search")}
html_theme_options = {
    "logo": {"text": "liedyn"},
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

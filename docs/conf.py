"""Configuration of the documentation site; `nox -s docs` builds it.

HDICORE_DOCS_OFFLINE=1 builds without network: links to other projects' sites are then left out.
"""

import os
import sys
from pathlib import Path

import hdicore

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

OFFLINE = os.environ.get("HDICORE_DOCS_OFFLINE", "0") != "0"
REPOSITORY = "https://github.com/hdicore/hdicore"

project = "hdicore"
author = "hdicore developers"
copyright = author
version = release = hdicore.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "myst_parser",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # of this folder
    "command_pages",
    "mocked_classes",
    "public_members",
    "repository_links",
    "stub_signatures",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/GALLERY_HEADER.md"]
nitpicky = True
default_role = "literal"  # names in docstrings
suppress_warnings = ["config.cache"]  # sphinx-gallery keeps a function in its settings

# What other sites document. Without network there are no links to them.
intersphinx_mapping = (
    {}
    if OFFLINE
    else {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }
)

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
repository_url = REPOSITORY

autodoc_mock_imports = ["skpro"]  # it wants an older pandas than the rest of the site may have
autodoc_typehints = "none"  # the docstrings say types and shapes
autodoc_member_order = "groupwise"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "abort_on_example_error": True,
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "hdicore"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_sidebars = {"index": [], "install": [], "changelog": [], "citing": []}
html_theme_options = {
    "logo": {
        "text": "hdicore",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "alt_text": "hdicore, home",
    },
    "icon_links": [{"name": "GitHub", "url": REPOSITORY, "icon": "fa-brands fa-github"}],
    "use_edit_page_button": True,
    # Pages that a build writes cannot be edited.
    "secondary_sidebar_items": {
        "*": ["page-toc", "edit-this-page"],
        "api/*": ["page-toc", "edit-this-page"],
        "api/generated/*": ["page-toc"],
        "command/*": ["page-toc"],
        "gallery/*": ["page-toc", "sg_download_links"],
    },
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_context = {
    "github_user": "hdicore",
    "github_repo": "hdicore",
    "github_version": "main",
    "doc_path": "docs",
}

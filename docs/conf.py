"""Configuration of the documentation site; `nox -s docs` builds it.

Links to other projects' sites need network. HDICORE_DOCS_OFFLINE=1 leaves them out, 0 insists on
them; without either, a build leaves them out where the first of these sites cannot be reached.
"""

import os
import sys
import urllib.request
from pathlib import Path

import hdicore

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import site_versions

REPOSITORY = "https://github.com/hdicore/hdicore"

# What other sites document.
OTHER_SITES = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
}


def is_offline():
    """Whether links to other sites are left out."""
    if chosen := os.environ.get("HDICORE_DOCS_OFFLINE"):
        return chosen != "0"
    try:
        urllib.request.urlopen("https://docs.python.org/3/objects.inv", timeout=10).close()
    except OSError as error:
        print(f"no links to other projects' sites: {error}")
        return True
    return False


project = "hdicore"
author = "hdicore developers"
copyright = author
host = site_versions.host()
version = release = host.release if host else hdicore.__version__

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
    "sphinxext.opengraph",
    # of this folder
    "command_pages",
    "mocked_classes",
    "name_links",
    "public_members",
    "report_table",
    "repository_links",
    "site_versions",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/GALLERY_HEADER.md"]
nitpicky = True
default_role = "py:name"  # names in docstrings
suppress_warnings = ["config.cache"]  # sphinx-gallery keeps a function in its settings

OFFLINE = is_offline()
intersphinx_mapping = {} if OFFLINE else OTHER_SITES
intersphinx_timeout = 20
# The tests compare links to the repository with its files.
linkcheck_ignore = [".*"] if OFFLINE else [REPOSITORY]
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_workers = 4

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
repository_url = REPOSITORY
site_releases = []  # of which a site is published, newest first, such as "0.1"
toc_object_entries_show_parents = "hide"

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
html_sidebars = {"**": ["sections"], "index": [], "404": []}
html_theme_options = {
    "logo": {
        "text": "hdicore",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "alt_text": "hdicore, home",
    },
    "navbar_persistent": ["search-button"],
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
    "navbar_center": ["navbar-sections"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
ogp_social_cards = {"enable": False}
ogp_enable_meta_description = True
if host:
    extensions.append("sphinx_sitemap")
    html_baseurl = ogp_site_url = host.address
    sitemap_url_scheme, sitemap_excludes = "{link}", ["404.html"]
    ogp_image = f"{host.address}_images/demo.png"
    html_theme_options |= {
        "switcher": host.switcher,
        "check_switcher": False,  # the build writes the file at its end
        "show_version_warning_banner": True,
        "navbar_start": ["navbar-logo", "version-switcher"],
    }
html_context = {
    "github_user": "hdicore",
    "github_repo": "hdicore",
    "github_version": "main",
    "doc_path": "docs",
}

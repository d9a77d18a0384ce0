"""The site: every page of this folder, by landing pages, with the reference from docstrings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # sitemaker
sys.path.insert(1, str(Path(__file__).parent.parent / "src"))

import driftbandit

project = "driftbandit"
version = release = driftbandit.__version__
copyright = "the authors of driftbandit, BSD-3-Clause"

extensions = ["myst_parser", "sphinx_copybutton", "sitemaker"]
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"
exclude_patterns = ["results"]
myst_heading_anchors = 3  # as code hosts make them
smartquotes = False  # x'theta is a product, not a quotation
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
highlight_language = "text"  # a fence without a language is a drawing or a formula

html_theme = "furo"
html_title = f"driftbandit {release}"
html_static_path = ["sitemaker/static"]
html_css_files = ["site.css"]
html_logo = "sitemaker/static/logo.svg"
html_favicon = "sitemaker/static/logo.svg"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
copybutton_prompt_text = ">>> "
copybutton_only_copy_prompt_lines = False
html_copy_source = False
html_show_sphinx = False

"""The book's Sphinx extension: one module a concern, all set up here."""

from . import anchors, assets, figures, glossary, interactive, maths, notebooks, offline, pages, pyrun, search


def site_address(app, config):
    """Where the published site lies follows from the repository's address: GitHub Pages."""
    host, owner, name = config.html_theme_options["repository_url"].removeprefix("https://").split("/")
    if not config.html_baseurl and host == "github.com":
        config.html_baseurl = f"https://{owner}.github.io/{name}/"


def setup(app):
    app.connect("config-inited", site_address)
    for part in (notebooks, anchors, maths, glossary, search, figures, interactive, pyrun, assets, pages, offline):
        part.setup(app)
    # Jupyter Book sets this even where sphinx_comments isn't loaded.
    app.add_config_value("comments_config", {}, "html")
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The book's Sphinx extension: one module a concern, all set up here."""

from . import anchors, assets, figures, glossary, maths, notebooks, pages, search


def setup(app):
    for part in (notebooks, anchors, maths, glossary, search, figures, assets, pages):
        part.setup(app)
    # Jupyter Book sets this even where sphinx_comments isn't loaded.
    app.add_config_value("comments_config", {}, "html")
    return {"parallel_read_safe": True, "parallel_write_safe": True}

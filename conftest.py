"""Two things that nbval (`pytest --nbval chapters`) has to know about our notebooks.

It takes a cell without an execution count for one that was never run: ours are stored without counts on purpose, so
that a notebook's file doesn't change when nothing in it did. And it leaves PNG pictures out of the comparison but not
SVG ones: ours are SVG, made anew by every run and never stored; the line of text that stands for them is compared."""


def pytest_collection_modifyitems(items):
    for item in items:
        cell = getattr(item, "cell", None)
        if cell is None:
            continue
        if cell.get("outputs") and cell.execution_count is None:
            cell.execution_count = 0
        if "image/svg+xml" not in item.parent.skip_compare:
            item.parent.skip_compare += ("image/svg+xml",)

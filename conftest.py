"""nbval (`pytest --nbval chapters`) takes a cell without an execution count for one that was never run. Ours are stored
without counts on purpose, so that a notebook's file doesn't change when nothing in it did."""


def pytest_collection_modifyitems(items):
    for item in items:
        cell = getattr(item, "cell", None)
        if cell is not None and cell.get("outputs") and cell.execution_count is None:
            cell.execution_count = 0

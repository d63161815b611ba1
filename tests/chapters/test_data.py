"""A chapter that reads data beside it must bring that data where the notebook stands alone (Colab): installing `lib` isn't enough."""

import nbformat
import pytest

from tests.conftest import ROOT


def code(path):
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


READERS = [path for path in sorted((ROOT / "chapters").glob("[0-9][0-9]-*.ipynb")) if any('"stored/' in source for source in code(path))]


def test_some_chapters_read_stored_data():
    assert len(READERS) >= 5


@pytest.mark.parametrize("path", READERS, ids=lambda path: path.stem)
def test_stored_data_is_fetched_with_the_repository(path):
    first = code(path)[0]
    assert "git clone" in first and 'os.chdir("token-journey/chapters")' in first, "只装 lib 的话，Colab 上没有 stored/；照第 1 章的第一个单元写"

"""The figures: every helper draws, Chinese shows, a missing glyph is an error, and text can be read."""

import inspect

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

import lib.plots as plots


@pytest.fixture(autouse=True)
def fresh():
    plots._setup()  # pytest puts its own warning filters in front of those that the import set
    yield
    plt.close("all")


def texts(ax):
    return [t.get_text() for t in ax.figure.findobj(Text) if t.get_text()]


def render():
    """Draw everything: this is where a missing glyph would be found."""
    plt.gcf().canvas.draw()


BOXES = {"x": (0, 0, "输入 x"), "f": (0, 4, "注意力\n$W_Q$", {"fill": "blue"}), "+": (0, 8, "+", {"shape": "circle"})}
CALLS = {
    "heatmap": lambda: plots.heatmap([[1, -np.inf], [np.nan, 4]], ["我", "爱"], ["我", "爱"], title="得分", diverging=True),
    "heatmaps": lambda: plots.heatmaps({"甲": np.eye(2), "乙": np.zeros((2, 2))}, share_limits=True)[0],
    "bars": lambda: plots.bars(["S", "M"], {"直接": [0.1, -0.6], "softmax": [0.04, 0.84]}),
    "lines": lambda: plots.lines([1, 10], {"不缩放": [1, 2], "除以 √d": [2, 2]}, log="xy", bands={"不缩放": ([0.9, 1.9], [1.1, 2.1])},
                                 reference={"均匀": 1.5}, ticks=[1, 10]),
    "pieces": lambda: plots.pieces({"GPT-2": ["st", "raw", " berry"], "中文": ["注意", "力"]}),
    "points": lambda: plots.points({"V₀": (1, 2), "V₁": (2, 8), "云": np.eye(2)}, hull=["V₀", "V₁"], equal=True),
    "diagram": lambda: plots.diagram(BOXES, [("x", "f"), ("f", "+", {"label": "输出"}), ((0, 2), "+", {"via": [(4, 2), (4, 8)], "dashed": True})]),
    "matrices": lambda: plots.matrices([("X", ("n", 3), 4), "×", ("$W_Q$", 4, ("$d_{head}$", 2), "orange")]),
}


def test_every_public_helper_is_drawn_here():
    helpers = {name for name in plots.__all__ if inspect.isfunction(getattr(plots, name))}
    assert helpers == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_helper_draws_with_the_shipped_font(name):
    ax = CALLS[name]()
    render()
    assert texts(ax)
    family = matplotlib.font_manager.FontProperties(fname=str(plots.FONT)).get_name()
    used = matplotlib.font_manager.findfont(family)
    assert used.endswith(plots.FONT.name), "系统里同名的字体抢先了"


@pytest.mark.parametrize("missing", ["𠮷野", "emoji 🙂", r"$\mathrm{汉}$"])
def test_missing_glyph_is_an_error(missing):
    plt.figure().suptitle(missing)
    with pytest.raises((UserWarning, ValueError)):
        render()


def test_minus_signs_are_drawn():
    ax = plots.heatmap([[-1.5, 2.0]])
    assert "−1.50" in texts(ax) and not [t for t in texts(ax) if t.startswith("-")]


def test_infinite_scores_are_written_and_missing_ones_left_blank():
    ax = plots.heatmap([[0.0, -np.inf, np.nan]], digits=1)
    written = [t.get_text() for t in ax.texts]
    assert written == ["0.0", "−∞"]


def test_numbers_on_a_heat_map_can_be_read():
    # Text is white on dark cells and dark on light ones: at least 4.5:1 everywhere, as WCAG asks of small text.
    values = np.linspace(0, 1, 21)[None]
    for diverging in (False, True):
        ax = plots.heatmap(values * 2 - 1 if diverging else values, diverging=diverging)
        image = ax.images[0]
        for text, value in zip(ax.texts, image.get_array()[0]):
            ground = plots._luminance(image.cmap(image.norm(value)))
            ink = plots._luminance(to_rgb(text.get_color()))
            light, dark = max(ground, ink), min(ground, ink)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (diverging, value)
        plt.close("all")


@pytest.mark.parametrize("color", [*plots.PALETTE, plots.INK, plots.MUTED])
def test_colours_are_readable_on_white_and_when_inverted(color):
    channels = np.array(to_rgb(color))
    assert 1.05 / (plots._luminance(channels) + 0.05) >= 4.5
    # What the pages' dark mode shows (book.css): invert(.93) hue-rotate(180deg) on a ground of the same treatment.
    rotate = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
    inverted = np.clip(rotate @ (0.93 - 0.86 * channels), 0, 1)
    ground = np.clip(rotate @ np.full(3, 0.07), 0, 1)
    assert (plots._luminance(inverted) + 0.05) / (plots._luminance(ground) + 0.05) >= 4.5


def test_series_differ_without_colour():
    ax = CALLS["lines"]()
    drawn = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_marker() not in ("None", None)]
    assert len({line.get_linestyle() for line in drawn}) == len({line.get_marker() for line in drawn}) == len(drawn) == 2


def test_names_at_the_ends_do_not_overlap():
    ax = plots.lines([0, 1], {"甲": [0, 1.0], "乙": [0, 1.001], "丙": [0, 1.002]})
    render()
    boxes = sorted((t.get_window_extent() for t in ax.texts), key=lambda b: b.y0)
    assert all(lower.y1 <= upper.y0 + 2 for lower, upper in zip(boxes, boxes[1:]))


def test_arrows_end_at_the_edge_of_their_box():
    shapes = {"x": (0, 0, {"w": 4, "h": 2, "shape": "box"}), "c": (0, 6, {"w": 2, "h": 2, "shape": "circle"})}
    assert plots._edge(shapes, "x", (0, 6)) == (0, 1)
    assert plots._edge(shapes, "c", (0, 0)) == (0, 5)
    assert plots._edge(shapes, (3, 3), (0, 0)) == (3, 3)


@pytest.mark.parametrize("call, word", [
    (lambda: plots.heatmap([1, 2]), "二维"),
    (lambda: plots.heatmap(np.eye(2), ["一个"]), "row_labels"),
    (lambda: plots.heatmaps({}), "panels"),
    (lambda: plots.bars(["S"], {"甲": [1, 2]}), "series"),
    (lambda: plots.lines([1, 2], {"甲": [1]}), "series"),
    (lambda: plots.points({"甲": [1, 2, 3]}), "groups"),
    (lambda: plots.diagram(BOXES, [("x", "没有")]), "没有"),
])
def test_bad_calls_say_what_is_wrong(call, word):
    with pytest.raises(ValueError, match=word):
        call()


def test_drawing_leaves_its_input_alone():
    values = np.array([[1.0, -np.inf]])
    plots.heatmap(values)
    assert np.array_equal(values, [[1.0, -np.inf]])


def test_words_beside_points_do_not_cover_each_other():
    groups = {"甲": (2, 8), "乙": (2, 6), "甲乙之间": (1.85, 6.2), "云": [(0, 0), (0.02, 0.01)]}
    ax = plots.points(groups, texts={"云": ["左边的字", "右边的字"]})
    render()
    renderer = ax.figure.canvas.get_renderer()
    boxes = [t.get_window_extent(renderer) for t in ax.texts]
    assert len(boxes) == 5 and not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_large_tables_have_few_labels_and_no_grid():
    def grid(ax):
        return any(tick.gridline.get_visible() for tick in ax.xaxis.get_minor_ticks())

    large, small = plots.heatmap(np.zeros((50, 50)), digits=None), plots.heatmap(np.zeros((4, 4)))
    assert sum(bool(t.get_text()) for t in large.get_xticklabels()) <= 12
    assert grid(small) and not grid(large)


def test_reference_line_leaves_room_for_its_name():
    ax = plots.lines([1, 10], {"甲": [1, 2]}, reference={"均匀": 1.5})
    assert max(ax.lines[-1].get_xdata()) == 10

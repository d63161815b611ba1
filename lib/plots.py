"""图：每种图一个函数，中文标签，浅色与深色页面都清楚。

只负责画，不计算正文要用的数。每个函数返回坐标轴，调用处以 `plt.show()` 结束；替代文本写在单元元数据里。
图以 SVG 输出，白底深字；网页的深色模式把图整体反相（色相不变），所以一份图两种页面都可读。
"""

import logging
import math
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

__all__ = ["heatmap", "heatmaps", "bars", "lines", "diagram", "matrices", "points", "pieces", "PALETTE", "INK", "MUTED"]

FONT = Path(__file__).parent / "fonts" / "NotoSansSC-Regular-subset.otf"
INK, MUTED, FAINT = "#1f2328", "#59636e", "#d1d9e0"
# Wong 的色盲友好配色，加深到白底上做小字也有 4.5:1 的对比度；线型与标记随颜色一起变，不只靠颜色区分。
PALETTE = ("#005a94", "#b34700", "#00704e", "#8f4a72", "#6b5d00", "#1f2328")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
FILLS = {"plain": "#f6f8fa", "blue": "#d6e8f7", "orange": "#fbe3d0", "green": "#d3efe3", "purple": "#f0dfea", "none": "none"}
SEQUENTIAL = LinearSegmentedColormap.from_list("course_seq", ["#ffffff", "#cfe3f3", "#6fa8d6", "#005a94", "#00335c"])
DIVERGING = LinearSegmentedColormap.from_list("course_div", ["#8a3600", "#e8995f", "#ffffff", "#6fa8d6", "#00406e"])


class _MissingGlyph(logging.Filter):
    """数学公式里缺字时 matplotlib 只写日志、画一个代用符号；这里改成报错。"""

    def filter(self, record):
        if "does not have a glyph" in record.getMessage():
            raise ValueError(f"公式里有字体画不出的字：{record.getMessage()}；中文请写在 $…$ 之外")
        return True


def _setup():
    """登记随书字体，缺字即报错（绝不画出方框），统一线宽、字号与 SVG 输出。"""
    font_manager.fontManager.addfont(str(FONT))
    family = font_manager.FontProperties(fname=str(FONT)).get_name()
    plt.rcParams.update({
        "font.family": [family, "DejaVu Sans"], "font.size": 11,
        "axes.unicode_minus": False, "axes.titlesize": 12, "axes.titlelocation": "left", "axes.titlepad": 10,
        "axes.edgecolor": MUTED, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": False, "grid.color": FAINT,
        "axes.prop_cycle": mpl.cycler(color=PALETTE, linestyle=DASHES), "lines.linewidth": 2,
        "figure.facecolor": "white", "savefig.facecolor": "white", "figure.dpi": 96,
        "svg.hashsalt": "token-journey", "mathtext.fontset": "dejavusans",
    })  # fmt: skip
    warnings.filterwarnings("error", message=r"Glyph .* missing from")
    logger = logging.getLogger("matplotlib.mathtext")
    if not any(isinstance(f, _MissingGlyph) for f in logger.filters):
        logger.addFilter(_MissingGlyph())
    try:  # 只在笔记本里有内联后端
        from IPython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:
        return
    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata={"Date": None})


_setup()


def heatmap(values, row_labels=None, column_labels=None, *, title="", x_label="", y_label="", digits=2, limits=None,
            diverging=False, ax=None):
    """带数值的热图；`-inf` 画成灰格并写 −∞，`nan` 留空，`digits=None` 不写数值

    形状：values [r, c] -> 坐标轴
    错误：values 不是二维，或标签个数与行、列数不符时 ValueError。
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 2:
        raise ValueError(f"values 应是二维数组 [行, 列]，收到形状 {values.shape}")
    for name, labels, size in (("row_labels", row_labels, values.shape[0]), ("column_labels", column_labels, values.shape[1])):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{name} 有 {len(labels)} 个，数组这一边有 {size} 个")
    ax = ax or plt.subplots(figsize=(0.75 * values.shape[1] + 1.2, 0.55 * values.shape[0] + 0.9))[1]
    finite = values[np.isfinite(values)]
    low, high = limits or ((finite.min(), finite.max()) if finite.size else (0.0, 1.0))
    if diverging:
        bound = max(abs(low), abs(high)) or 1.0
        norm, colors = TwoSlopeNorm(0, -bound, bound), DIVERGING.with_extremes(bad="#e5e9ee")
    else:
        norm, colors = mpl.colors.Normalize(low, high if high > low else low + 1), SEQUENTIAL.with_extremes(bad="#e5e9ee")
    ax.imshow(np.ma.masked_invalid(values), cmap=colors, norm=norm, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if digits is None:
            break
        text = "−∞" if np.isneginf(value) else "" if np.isnan(value) else f"{value:.{digits}f}".replace("-", "−")
        # 亮度 0.179 处黑字与白字一样清楚（4.58:1）；深灰的 INK 在中间色上达不到 4.5:1。
        dark = np.isfinite(value) and _luminance(colors(norm(value))) < 0.179
        if text:
            ax.text(j, i, text, ha="center", va="center", color="white" if dark else "black", fontsize=10)
    ax.set_xticks(range(values.shape[1]), _cell_labels(column_labels, values.shape[1]))
    ax.set_yticks(range(values.shape[0]), _cell_labels(row_labels, values.shape[0]))
    ax.tick_params(length=0, top=False, bottom=False, labeltop=True, labelbottom=False)
    ax.xaxis.set_label_position("top")
    ax.spines[:].set_visible(False)
    ax.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(values.shape[0] + 1) - 0.5, minor=True)
    if max(values.shape) <= 32:  # 格子太小时，格线会盖住颜色
        ax.grid(which="minor", color=FAINT, linewidth=1)
    ax.tick_params(which="minor", length=0)
    ax.set(title=title, xlabel=x_label, ylabel=y_label)
    return ax


def _cell_labels(labels, size):
    """行或列的标签；没有给就是编号，多于 12 个时每隔几个写一个，免得挤成一团。"""
    if labels is not None:
        return labels
    step = math.ceil(size / 12)
    return [str(i) if i % step == 0 else "" for i in range(size)]


def heatmaps(panels, row_labels=None, column_labels=None, *, columns=2, share_limits=False, **options):
    """几张热图并排，`panels` 是「标题 -> 二维数组」

    形状：panels 每项 [r, c] -> 坐标轴列表
    """
    panels = {title: np.asarray(values, dtype=float) for title, values in panels.items()}
    if not panels:
        raise ValueError("panels 是空的：至少给一张图")
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    height, width = (max(values.shape[side] for values in panels.values()) for side in (0, 1))
    wide, high = (0.62, 0.5) if options.get("digits", 2) is not None else (0.16, 0.16)  # 不写数值的格子可以小得多
    _, axes = plt.subplots(rows, columns, figsize=(columns * (wide * width + 0.9), rows * (high * height + 1.1)),
                           squeeze=False, layout="constrained")
    if share_limits:
        finite = np.concatenate([values[np.isfinite(values)] for values in panels.values()])
        options["limits"] = (finite.min(), finite.max())
    for ax, (title, values) in zip(axes.flat, panels.items()):
        heatmap(values, row_labels, column_labels, title=title, ax=ax, **options)
    for ax in axes.flat[len(panels):]:
        ax.set_axis_off()
    return list(axes.flat[: len(panels)])


def bars(labels, series, *, title="", x_label="", y_label="", digits=2, ax=None):
    """横向分组条形图，条末写数值；`series` 是「名字 -> 每个标签的值」或一组值

    形状：series 每项 [k] -> 坐标轴
    错误：某一组的长度与标签数不符时 ValueError。
    """
    series = series if isinstance(series, dict) else {"": series}
    for name, values in series.items():
        if len(values) != len(labels):
            raise ValueError(f"series[{name!r}] 有 {len(values)} 个值，标签有 {len(labels)} 个")
    ax = ax or plt.subplots(figsize=(5.6, 0.34 * len(labels) * len(series) + 1.0))[1]
    thickness = 0.8 / len(series)
    top = max(max(np.abs(values)) for values in series.values()) or 1.0
    for index, (name, values) in enumerate(series.items()):
        place = np.arange(len(labels)) + (index - (len(series) - 1) / 2) * thickness
        hatch = ("", "///", "...", "xxx")[index % 4]
        ax.barh(place, values, thickness * 0.9, color=PALETTE[index], hatch=hatch, edgecolor="white", linewidth=0, label=name)
        for at, value in zip(place, values):
            text = f"{value:,.{digits}f}".replace("-", "−")
            ax.text(value + math.copysign(top * 0.015, value or 1), at, text, va="center", ha="left" if value >= 0 else "right", fontsize=10)
    ax.set_yticks(range(len(labels)), labels)
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.spines["left"].set_visible(min(min(v) for v in series.values()) >= 0)
    ax.tick_params(axis="y", length=0)
    ax.set(title=title, xlabel=x_label, ylabel=y_label)
    if len(series) > 1:
        ax.legend(frameon=False, loc="best")
    return ax


def lines(x, series, *, title="", x_label="", y_label="", log="", bands=None, reference=None, ticks=None, markers=True, ax=None):
    """折线图，名字直接写在线的末端；`log` 取 ""、"x"、"y"、"xy"

    `bands` 是「名字 -> (下界, 上界)」，画成同色阴影；`reference` 是「名字 -> y」，画成灰色水平线。

    形状：x [k]，series 每项 [k] -> 坐标轴
    错误：某条线的长度与 x 不符时 ValueError。
    """
    for name, values in series.items():
        if len(values) != len(x):
            raise ValueError(f"series[{name!r}] 有 {len(values)} 个值，x 有 {len(x)} 个")
    ax = ax or plt.subplots(figsize=(5.8, 3.4))[1]
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")
    for index, (name, values) in enumerate(series.items()):
        color = PALETTE[index % len(PALETTE)]
        ax.plot(x, values, color=color, linestyle=DASHES[index % len(DASHES)],
                marker=MARKERS[index % len(MARKERS)] if markers else None, markersize=5)
        if bands and name in bands:
            ax.fill_between(x, *bands[name], color=color, alpha=0.15, linewidth=0)
    for value in (reference or {}).values():  # 画到数据为止，末端留给名字
        ax.plot([x[0], x[-1]], [value, value], color=MUTED, linewidth=1, linestyle=(0, (2, 2)))
    ax.set(title=title, xlabel=x_label, ylabel=y_label)
    if ticks is not None:
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
        ax.set_xticks([], minor=True)
    ax.grid(axis="y", linewidth=0.6)
    ax.set_axisbelow(True)
    ends = [(name, values[-1], PALETTE[i % len(PALETTE)]) for i, (name, values) in enumerate(series.items())]
    ends += [(name, value, MUTED) for name, value in (reference or {}).items()]
    _label_ends(ax, x[-1], ends)
    return ax


def _label_ends(ax, x, ends, gap=14):
    """在线末写名字；太近的上下推开，`gap` 是最小间距（像素）。"""
    to_pixel = ax.transData.transform
    ax.figure.canvas.draw()
    order = sorted(range(len(ends)), key=lambda i: to_pixel((x, ends[i][1]))[1])
    heights = [to_pixel((x, ends[i][1]))[1] for i in order]
    spread = list(heights)
    for i in range(1, len(spread)):
        spread[i] = max(spread[i], spread[i - 1] + gap)
    shift = (sum(spread) - sum(heights)) / max(len(spread), 1)
    for i, height in zip(order, spread):
        name, value, color = ends[i]
        offset = (height - shift - to_pixel((x, value))[1]) * 72 / ax.figure.dpi
        ax.annotate(name, (x, value), xytext=(8, offset), textcoords="offset points", color=color, va="center", fontsize=10,
                    annotation_clip=False)


def diagram(boxes, arrows, *, title="", size=None, ax=None):
    """方框与箭头

    `boxes` 是「键 -> (x, y, 文字) 或 (x, y, 文字, 选项)」，x、y 是方框中心，单位约为一个字高；选项可含 `fill`（FILLS 的键）、
    `w`、`h`、`shape`（"box"、"circle" 或 "frame"：虚线框，文字写在左上角之上，要给出 `w` 与 `h`）、`color`。`arrows` 是 (起, 止) 或 (起, 止, 选项)，起止是键或 (x, y)；
    选项可含 `via`（途经的点，画成折线）、`label`、`dashed`、`color`。

    形状：boxes 与 arrows -> 坐标轴
    错误：箭头提到没有的方框时 ValueError。
    """
    ax = ax or plt.subplots(figsize=size or (5.6, 3.6))[1]
    shapes = {}
    for key, (x, y, text, *rest) in boxes.items():
        options = {"w": 0.5 * max(map(_width, text.split("\n"))) + 1.2, "h": 1.15 * (text.count("\n") + 1) + 0.7, "fill": "plain",
                   "shape": "box", "color": INK} | (rest[0] if rest else {})
        shapes[key] = (x, y, options)
        _draw_box(ax, x, y, text, options)
    for start, end, *rest in arrows:
        for name in (start, end):
            if not isinstance(name, tuple) and name not in shapes:
                raise ValueError(f"箭头 {start!r} → {end!r} 提到了没有的方框 {name!r}；已有：{', '.join(map(str, shapes))}")
        _draw_arrow(ax, shapes, start, end, rest[0] if rest else {})
    ax.set_aspect("equal")
    ax.autoscale_view()
    ax.margins(0.03)
    ax.set_axis_off()
    ax.set_title(title)
    return ax


def _width(text):
    """一行字的大致宽度，单位是半个汉字；公式里的 $ _ { } 不占地方。"""
    return sum(2.0 if ord(c) > 0x2E7F else 1.1 for c in text if c not in "$_{}\\")


def _draw_box(ax, x, y, text, options):
    w, h = options["w"], options["h"]
    if options["shape"] == "frame":
        ax.add_patch(FancyBboxPatch((x - w / 2, y - h / 2), w, h, boxstyle="round,pad=0,rounding_size=0.35", facecolor="none",
                                    edgecolor=MUTED, linewidth=1, linestyle=(0, (4, 3))))
        ax.text(x - w / 2, y + h / 2 + 0.25, text, ha="left", va="bottom", fontsize=10, color=options["color"])
        return
    if options["shape"] == "circle":
        patch = mpl.patches.Circle((x, y), h / 2, facecolor=FILLS[options["fill"]], edgecolor=options["color"], linewidth=1.3)
    else:
        edge = "none" if options["fill"] == "none" else options["color"]
        patch = FancyBboxPatch((x - w / 2, y - h / 2), w, h, boxstyle="round,pad=0,rounding_size=0.35",
                               facecolor=FILLS[options["fill"]], edgecolor=edge, linewidth=1.3)
    ax.add_patch(patch)
    ax.text(x, y, text, ha="center", va="center", fontsize=10.5, color=options["color"], linespacing=1.25)


def _draw_arrow(ax, shapes, start, end, options):
    points = [_centre(shapes, start), *options.get("via", ()), _centre(shapes, end)]
    points[0] = _edge(shapes, start, points[1])
    points[-1] = _edge(shapes, end, points[-2])
    color, style = options.get("color", MUTED), "--" if options.get("dashed") else "-"
    for a, b in zip(points[:-2], points[1:-1]):
        ax.plot(*zip(a, b), color=color, linewidth=1.5, linestyle=style, solid_capstyle="round")
    ax.add_patch(FancyArrowPatch(points[-2], points[-1], arrowstyle="-|>", mutation_scale=12, color=color, linewidth=1.5,
                                 linestyle=style, shrinkA=0, shrinkB=0))
    if label := options.get("label"):
        a, b = points[len(points) // 2 - 1], points[len(points) // 2]
        x, y, level = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2, abs(b[0] - a[0]) > abs(b[1] - a[1])
        # 横线的字写在线上方，竖线的写在右边：都不压线。
        ax.text(x + (0 if level else 0.25), y + (0.2 if level else 0), label, fontsize=9.5, color=color,
                ha="center" if level else "left", va="bottom" if level else "center")


def _centre(shapes, name):
    return name if isinstance(name, tuple) else shapes[name][:2]


def _edge(shapes, name, towards):
    """方框边上朝着 `towards` 的那一点；裸坐标原样返回。"""
    if isinstance(name, tuple):
        return name
    x, y, options = shapes[name]
    dx, dy = towards[0] - x, towards[1] - y
    if options["shape"] == "circle":
        length = math.hypot(dx, dy) or 1.0
        return x + dx / length * options["h"] / 2, y + dy / length * options["h"] / 2
    scale = min(options["w"] / 2 / abs(dx) if dx else math.inf, options["h"] / 2 / abs(dy) if dy else math.inf)
    return x + dx * scale, y + dy * scale


def matrices(terms, *, title="", unit=0.32, ax=None):
    """矩阵形状图：一行里依次画出矩阵与运算符，长宽按形状的比例

    `terms` 的每一项是运算符文字，或 (名字, 行数, 列数) / (名字, 行数, 列数, 填色)；行数或列数可以是 (显示的文字, 画的格数)。

    形状：terms -> 坐标轴
    """
    ax = ax or plt.subplots(figsize=(5.8, 2.2))[1]
    x, tallest = 0.0, 0.0
    for term in terms:
        if isinstance(term, str):
            x += 0.45 + 0.1 * len(term)
            ax.text(x, 0, term, ha="center", va="center", fontsize=13)
            x += 0.45 + 0.1 * len(term)
            continue
        name, rows, columns, *fill = term
        (row_text, rows), (column_text, columns) = (v if isinstance(v, tuple) else (str(v), v) for v in (rows, columns))
        w, h = unit * columns, unit * rows
        x += 0.13 * _width(row_text)  # 行数写在左边，别压住前面的运算符
        for i in range(rows):
            for j in range(columns):
                ax.add_patch(Rectangle((x + j * unit, h / 2 - (i + 1) * unit), unit, unit, facecolor=FILLS[fill[0] if fill else "blue"],
                                       edgecolor=MUTED, linewidth=0.7))
        ax.text(x + w / 2, h / 2 + 0.5, name, ha="center", va="bottom", fontsize=12)
        ax.text(x + w / 2, h / 2 + 0.08, column_text, ha="center", va="bottom", fontsize=9, color=MUTED)
        ax.text(x - 0.07, 0, row_text, ha="right", va="center", fontsize=9, color=MUTED)
        x += w
        tallest = max(tallest, h)
    ax.set_xlim(-0.5, x + 0.2)
    ax.set_ylim(-tallest / 2 - 0.2, tallest / 2 + 1.1)
    ax.set_aspect("equal", anchor="W")
    ax.set_axis_off()
    ax.set_title(title)
    return ax


def points(groups, *, texts=None, title="", x_label="", y_label="", hull=(), equal=False, ax=None):
    """平面上的点：`groups` 是「名字 -> 一个点或一组点」，`hull` 列出用浅色多边形连起来的名字，`equal` 让两轴等比例

    `texts` 是「名字 -> 这一组每个点旁边的小字」。

    形状：groups 每项 [2] 或 [k, 2] -> 坐标轴
    错误：某一组不是 [2] 或 [k, 2] 时 ValueError。
    """
    groups = {name: np.atleast_2d(np.asarray(values, dtype=float)) for name, values in groups.items()}
    for name, values in groups.items():
        if values.ndim != 2 or values.shape[1] != 2:
            raise ValueError(f"groups[{name!r}] 应是一个点 [2] 或一组点 [k, 2]，收到形状 {values.shape}")
    ax = ax or plt.subplots(figsize=(4.6, 3.8))[1]
    if hull:
        ax.add_patch(plt.Polygon([groups[name][0] for name in hull], closed=True, facecolor=FILLS["blue"], edgecolor=PALETTE[0]))
    words = []  # (文字, 点, 颜色, 字号)
    for index, (name, values) in enumerate(groups.items()):
        style = {"marker": MARKERS[index % len(MARKERS)], "color": PALETTE[index % len(PALETTE)], "linestyle": "none"}
        many = len(values) > 1
        ax.plot(*values.T, markersize=4 if many else 8, label=name if many else None, **style)
        if not many:
            words.append((name, values[0], style["color"], 10))
        words += [(text, place, style["color"], 8.5) for text, place in zip((texts or {}).get(name, ()), values) if text]
    if any(len(values) > 1 for values in groups.values()):
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.2)
    ax.margins(0.15)
    if equal:
        ax.set_aspect("equal", adjustable="datalim")
    ax.set(title=title, xlabel=x_label, ylabel=y_label)
    ax.grid(linewidth=0.6)
    ax.set_axisbelow(True)
    _write_beside(ax, words, np.concatenate(list(groups.values())))
    return ax


def _write_beside(ax, words, places):
    """把字写在点旁：右上、右下、左上、左下里第一个不压别的字和点的地方；都压着就取压得最少的。"""
    ax.figure.canvas.draw()
    renderer, taken = ax.figure.canvas.get_renderer(), []
    dots = ax.transData.transform(places)
    for text, place, color, size in words:
        best = None
        for dx, dy in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            note = ax.annotate(text, place, xytext=(5 * dx, 4 * dy), textcoords="offset points", color=color, fontsize=size,
                               ha="left" if dx > 0 else "right", va="bottom" if dy > 0 else "top")
            box = note.get_window_extent(renderer)
            inside = (dots >= box.min) & (dots <= box.max)
            hits = sum(box.overlaps(other) for other in taken) + inside.all(axis=1).sum()
            if best is None or hits < best[0]:
                if best:
                    best[1].remove()
                best = hits, note, box
            else:
                note.remove()
        taken.append(best[2])


def pieces(rows, *, title="", ax=None):
    """一行一种切法：`rows` 是「名字 -> 片段（文字）」，相邻片段填色交替，片段开头的空格画成 ␣

    形状：rows 每项是一串文字 -> 坐标轴
    """
    ax = ax or plt.subplots(figsize=(6.2, 0.5 * len(rows) + 0.5))[1]
    farthest = 0.0
    for line, parts in enumerate(rows.values()):
        x = 0.0
        for index, text in enumerate(parts):
            text = text.replace(" ", "␣")
            w = 0.62 * _width(text) + 0.7
            ax.add_patch(Rectangle((x, -line - 0.36), w, 0.72, facecolor=FILLS[("blue", "orange")[index % 2]], edgecolor=MUTED, linewidth=0.8))
            ax.text(x + w / 2, -line, text, ha="center", va="center", fontsize=10)
            x += w + 0.12
        farthest = max(farthest, x)
    ax.set(xlim=(-0.1, farthest), ylim=(-len(rows) + 0.4, 0.5), title=title)
    ax.set_xticks([])
    ax.set_yticks(-np.arange(len(rows)), [f"{name}（{len(parts)}）" for name, parts in rows.items()])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _luminance(rgba):
    """WCAG 的相对亮度。"""
    channels = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgba[:3]]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]

// Building blocks of the page: elements, a picture of an array that a keyboard and a screen reader can read, bars.
(() => {
  "use strict";

  // h("p", {className: "x"}, "text", child, …): an element; unknown properties become attributes.
  function h(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element && name !== "list" && name !== "role") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  const MINUS = "\u2212";
  // "0" is exactly zero; what only rounds to it is "0.000". A real minus sign, infinity as it is written.
  function number(x, places = 3) {
    if (x === -Infinity) return MINUS + "∞";
    if (x === 0) return "0";
    const size = Math.abs(x), text = size >= 1000 ? size.toFixed(0) : size >= 100 ? size.toFixed(1) : size.toFixed(places);
    return (x < 0 && Number(text) !== 0 ? MINUS : "") + text;
  }
  const percent = (x) => (x > 0 && x < 0.0005 ? "<0.1%" : `${(100 * x).toFixed(1)}%`);
  const integer = (x) => Math.round(x).toLocaleString("en-US");

  // ---------------------------------------------------------------- colours

  const probe = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const mix = (a, b, t) => a.map((x, i) => Math.round(x + (b[i] - x) * t));
  const css = (rgb) => `rgb(${rgb.join(" ")})`;
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  let colours = null; // of the present theme; read anew when it changes
  function palette() {
    if (colours) return colours;
    const [zero, positive, negative] = ["--journey-zero", "--journey-positive", "--journey-negative"].map((name) => channels(probe(name)));
    return (colours = { zero, positive, negative, text: probe("--journey-text"), mark: probe("--journey-mark"), blocked: probe("--journey-blocked"), family: getComputedStyle(document.body).fontFamily });
  }

  // ---------------------------------------------------------------- a picture of an array

  const pictures = new Set();
  const redrawAll = () => { colours = null; pictures.forEach((picture) => picture.draw()); };
  // There are some fifty pictures on the page: each is laid out at once, and painted when it comes near the window.
  const near = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => { target.near = isIntersecting; if (isIntersecting && target.stale) target.draw(); }), { rootMargin: "800px 0px" });
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target, contentRect }) => { target.parentNode.parentNode.room = contentRect.width; target.parentNode.parentNode.draw(); }));

  // Rows of numbers as coloured cells. Focusable: arrow keys move a cursor whose value stands below and is read out.
  class ArrayPicture extends HTMLElement {
    constructor() {
      super();
      this.cursor = [0, 0];
    }

    // title: what it is; columns: unit of a column ("维", "词元"); size: wanted cell width; places: decimals
    build({ title, unit = "维", size = 16, places = 3, columnLabels = false }) {
      Object.assign(this, { heading: title, unit, size, places, columnLabels });
      this.caption = h("figcaption");
      this.canvas = h("canvas", { role: "presentation" });
      this.status = h("output", { className: "journey-value" });
      this.box = h("div", { className: "journey-scroll", tabIndex: 0, role: "group" }, this.canvas);
      this.table = h("div", { className: "journey-table", tabIndex: 0, role: "group" });
      this.details = h("details", { className: "journey-details" }, h("summary", {}, "数字表"), this.table);
      this.append(h("figure", {}, this.caption, this.box, this.status, this.details));
      this.details.addEventListener("toggle", () => this.fillTable());
      this.box.addEventListener("keydown", (event) => this.move(event));
      this.canvas.addEventListener("click", (event) => this.point(event));
      this.box.addEventListener("focus", () => { this.focused = true; this.draw(); this.say(); });
      this.box.addEventListener("blur", () => { this.focused = false; this.draw(); });
      pictures.add(this);
      near.observe(this);
      sizes.observe(this.box);
      return this;
    }

    // labels: [{short, long}] of the rows; columns: the same for the columns, if they are tokens; row: the tracked one
    show({ rows, labels, columns = null, row = null, title = this.heading, note = "" }) {
      Object.assign(this, { rows, labels, columns, row, heading: title });
      this.cursor = [Math.min(this.cursor[0], rows.length - 1), Math.min(this.cursor[1], rows[0].length - 1)];
      const finite = rows.flatMap((r) => Array.from(r).filter(Number.isFinite));
      // Not Math.max(...finite): a long argument list overflows the stack.
      const [low, high] = finite.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
      this.peak = Math.max(Math.abs(low), Math.abs(high)) || 1;
      const shape = `[${rows.length}, ${rows[0].length}]`;
      const extra = [`${number(low, this.places)} 到 ${number(high, this.places)}`, note].filter(Boolean);
      this.caption.replaceChildren(h("strong", {}, title), ` ${shape}`, ...extra.map((text) => h("span", { className: "journey-range" }, text)));
      const summary = `${title}，${rows.length} 行 ${rows[0].length} 列，从 ${number(low, this.places)} 到 ${number(high, this.places)}。方向键逐格读数。`;
      this.box.setAttribute("aria-label", summary);
      this.table.setAttribute("aria-label", `${title}的数字表`);
      this.fillTable();
      this.status.textContent = "";
      this.draw();
    }

    geometry() {
      const gutter = 62, top = this.columns ? 20 : 0;
      const room = this.room - gutter - 2;
      const count = this.rows[0].length;
      const smallest = count > 200 ? 3 : count > 40 ? 5 : this.columns ? 16 : 7;
      const width = Math.max(smallest, Math.min(this.size, Math.floor(room / count)));
      const height = this.columns ? Math.max(18, Math.min(width, 30)) : 18;
      return { gutter, top, width, height, count };
    }

    draw() {
      if (!this.rows || !this.room) return;
      const g = (this.g = this.geometry());
      const w = g.gutter + g.width * g.count + 2, hgt = g.top + g.height * this.rows.length + 2;
      Object.assign(this.canvas.style, { width: `${w}px`, height: `${hgt}px` });
      this.stale = !this.near;
      if (!this.stale) this.paint(g, w, hgt);
    }

    paint(g, w, hgt) {
      const colours = palette(), { family } = colours;
      const ratio = w > 2000 ? 1 : window.devicePixelRatio || 1;
      Object.assign(this.canvas, { width: Math.round(w * ratio), height: Math.round(hgt * ratio) });
      const c = this.canvas.getContext("2d");
      c.scale(ratio, ratio);
      c.textBaseline = "middle";
      this.drawLabels(c, g, colours, family);
      this.rows.forEach((row, i) => row.forEach((x, j) => this.drawCell(c, g, colours, family, x, i, j)));
      c.lineWidth = 2;
      if (this.row !== null && this.row < this.rows.length) {
        c.strokeStyle = colours.mark;
        c.strokeRect(g.gutter - 1, g.top + this.row * g.height, g.width * g.count + 2, g.height);
      }
      if (this.focused || this.picked) {
        const [i, j] = this.cursor;
        c.strokeStyle = colours.text;
        c.strokeRect(g.gutter + j * g.width, g.top + i * g.height, Math.max(g.width, 4), g.height);
      }
    }

    drawLabels(c, g, colours, family) {
      c.font = `13px ${family}`;
      c.textAlign = "right";
      this.labels.slice(0, this.rows.length).forEach((label, i) => {
        c.fillStyle = i === this.row ? colours.mark : colours.text;
        c.fillText(label.short, g.gutter - 6, g.top + (i + 0.5) * g.height + 1, g.gutter - 8);
      });
      if (!this.columns) return;
      c.textAlign = "center";
      c.fillStyle = colours.text;
      this.columns.forEach((label, j) => c.fillText(label.short, g.gutter + (j + 0.5) * g.width, g.top / 2, g.width - 1));
    }

    drawCell(c, g, colours, family, x, i, j) {
      const left = g.gutter + j * g.width, top = g.top + i * g.height, gap = g.width > 5 ? 1 : 0;
      if (x === -Infinity) {
        c.fillStyle = colours.blocked;
        c.textAlign = "center";
        c.font = `11px ${family}`;
        c.fillText("×", left + g.width / 2, top + g.height / 2 + 1);
        return;
      }
      // Square root: small values stay visible beside large ones.
      const fill = mix(colours.zero, x < 0 ? colours.negative : colours.positive, Math.sqrt(Math.min(1, Math.abs(x) / this.peak)));
      c.fillStyle = css(fill);
      c.fillRect(left, top, g.width - gap, g.height - gap);
      if (g.width < 34) return;
      c.fillStyle = luminance(fill) > 0.3 ? "#000" : "#fff";
      c.font = `11px ${family}`;
      c.textAlign = "center";
      c.fillText(number(x, 2), left + g.width / 2, top + g.height / 2 + 1, g.width - 3);
    }

    move(event) {
      const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-8, 0], PageDown: [8, 0] };
      const last = [this.rows.length - 1, this.rows[0].length - 1];
      let to;
      if (steps[event.key]) to = this.cursor.map((x, axis) => x + steps[event.key][axis]);
      else if (event.key === "Home") to = [this.cursor[0], 0];
      else if (event.key === "End") to = [this.cursor[0], last[1]];
      else return;
      event.preventDefault();
      this.go(to.map((x, axis) => Math.min(last[axis], Math.max(0, x))));
    }

    point(event) {
      const box = this.canvas.getBoundingClientRect(), g = this.g;
      const j = Math.floor((event.clientX - box.left - g.gutter) / g.width), i = Math.floor((event.clientY - box.top - g.top) / g.height);
      if (i < 0 || j < 0 || i >= this.rows.length || j >= g.count) return;
      this.picked = true;
      this.go([i, j]);
    }

    go(cursor) {
      this.cursor = cursor;
      const g = this.g, left = g.gutter + cursor[1] * g.width;
      if (left < this.box.scrollLeft + g.gutter) this.box.scrollLeft = left - g.gutter;
      else if (left + g.width > this.box.scrollLeft + this.box.clientWidth) this.box.scrollLeft = left + g.width - this.box.clientWidth;
      this.draw();
      this.say();
    }

    columnName(j) {
      return this.columns ? `列 ${this.columns[j].long}` : this.columnText ? this.columnText(j) : `第 ${j} ${this.unit}`;
    }

    say() {
      const [i, j] = this.cursor, x = this.rows[i][j];
      this.status.textContent = `行 ${this.labels[i].long}，${this.columnName(j)}：${x === -Infinity ? "负无穷" : number(x, this.places + 1)}`;
    }

    // The same numbers as a table, made only when somebody opens it.
    fillTable() {
      if (!this.details.open || !this.rows) { this.table.replaceChildren(); return; }
      const count = this.rows[0].length;
      const cell = (x) => `<td>${number(x, this.places)}</td>`;
      const head = Array.from({ length: count }, (_, j) => h("th", { scope: "col" }, this.columns ? this.columns[j].short : this.columnText ? this.columnText(j) : String(j)));
      const table = h("table", {}, h("thead", {}, h("tr", {}, h("td"), ...head)));
      const body = table.createTBody();
      this.rows.forEach((row, i) => {
        const tr = h("tr", {}, h("th", { scope: "row" }, this.labels[i].short));
        tr.insertAdjacentHTML("beforeend", Array.from(row, cell).join(""));
        body.append(tr);
      });
      this.table.replaceChildren(table);
    }
  }
  if (!customElements.get("array-picture")) customElements.define("array-picture", ArrayPicture);
  const picture = (options) => document.createElement("array-picture").build(options);

  // ---------------------------------------------------------------- bars: a table whose last column is drawn

  // entries: [{name, values: [text, …], share (0…1), off}]
  function bars(heads, entries) {
    const body = h("tbody");
    for (const { name, values, share, off } of entries) {
      const bar = h("span", { className: "journey-bar" });
      bar.style.inlineSize = `${(100 * share).toFixed(2)}%`;
      body.append(h("tr", { className: off ? "journey-off" : "" }, h("th", { scope: "row" }, name), ...values.map((v) => h("td", {}, v)), h("td", { className: "journey-bar-cell", "aria-hidden": "true" }, bar)));
    }
    const row = h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)), h("td", { "aria-hidden": "true" }));
    return h("div", { className: "journey-bars", tabIndex: 0, role: "group", "aria-label": heads.join("、") }, h("table", {}, h("thead", {}, row), body));
  }

  // A range with its name before and its value behind; `show` says the value in words.
  function slider(text, { min, max, step, value }, show, change) {
    const input = h("input", { type: "range", min, max, step, value }), said = h("span", { className: "journey-said", "aria-hidden": "true" });
    const update = () => { said.textContent = show(Number(input.value)); input.setAttribute("aria-valuetext", said.textContent); };
    input.addEventListener("input", () => { update(); change(Number(input.value)); });
    update();
    return h("label", { className: "journey-slider" }, h("span", {}, text), input, said);
  }
  const button = (text, action) => h("button", { type: "button", onclick: action }, text);
  const facts = (...parts) => h("p", { className: "journey-facts" }, ...parts);

  globalThis.JourneyParts = { h, number, percent, integer, picture, bars, slider, button, facts, redrawAll };
})();

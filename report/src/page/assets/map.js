// Interactive map. A zoomed-out map draws groups of rows. Each group size (a power of two) has a table of cells, by
// group and time, which is made on first use. So the cost of a frame depends on the number of pixels, not of
// branches.
(() => {
  const { tree, data, make, plain, commas, clamp, colour, word, copyable, ticks } = Everett;
  const view = document.getElementById("map-view");
  const canvas = document.getElementById("map-canvas");
  const panel = document.getElementById("map-branch");
  const controls = document.getElementById("map-controls").elements;
  const counter = document.getElementById("map-count");
  if (tree.count === 0) { counter.textContent = "There are no branches yet."; return; }
  view.hidden = false;
  const context = canvas.getContext("2d", { alpha: false });
  const AXIS = 24, LEFT = 12, RIGHT = 14, BINS = 96, NEAR = 5;
  let width = 0, height = 0, ratio = 1, palette = {};
  // Visible part: from x0 to x1 as shares of the horizon, from y0 to y1 in rows.
  let x0 = 0, x1 = 1, y0 = 0, y1 = tree.rows;
  let selection = tree.select({ show: "all", fault: "", fresh: 0 });
  let tables = new Map();
  let picked = -1, onWay = new Set();
  let asked = false;

  function paint() {
    const names = ["bg", "ink", "dim", "line", "soft", "fail", "fault", "n1", "n2", "n3", "n4", "track", "link"];
    palette = Object.fromEntries(names.map((name) => [name, colour(name)]));
    palette.levels = [palette.soft, palette.n1, palette.n2, palette.n3, palette.n4];
    palette.pale = palette.soft;
  }
  function size() {
    const box = canvas.getBoundingClientRect();
    ratio = Math.min(devicePixelRatio || 1, 2);
    width = Math.max(box.width, 50); height = Math.max(box.height, 80);
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    draw();
  }
  const X = (at) => LEFT + ((at / tree.horizon - x0) / (x1 - x0)) * (width - LEFT - RIGHT);
  const Y = (row) => ((row - y0) / (y1 - y0)) * (height - AXIS);
  const time = (x) => (x0 + ((x - LEFT) / (width - LEFT - RIGHT)) * (x1 - x0)) * tree.horizon;
  const rowAt = (y) => y0 + (y / (height - AXIS)) * (y1 - y0);

  // Returns the table for groups of 2^power rows. A cell is a sum: the greatest novelty in bits 0 to 2, 8 if there is
  // a branch, 16 if there is a finding, and 32 if the filter selects a branch.
  function table(power) {
    let cells = tables.get(power);
    if (cells) return cells;
    const group = 2 ** power;
    cells = new Uint8Array(Math.ceil(tree.rows / group) * BINS);
    for (let n = 0; n < tree.count; n++) {
      const base = Math.floor(tree.row[n] / group) * BINS;
      const a = Math.min(Math.floor((tree.begin[n] / tree.horizon) * BINS), BINS - 1);
      const b = clamp(Math.ceil((tree.end[n] / tree.horizon) * BINS) - 1, a, BINS - 1);
      const chosen = selection.chosen[n];
      for (let bin = a; bin <= b; bin++) {
        let cell = cells[base + bin] | 8;
        if (chosen) { cell |= 32; if (tree.level[n] > (cell & 7)) cell = (cell & ~7) | tree.level[n]; }
        cells[base + bin] = cell;
      }
      if (chosen && tree.found[n]) cells[base + b] |= 16;
    }
    tables.set(power, cells);
    return cells;
  }

  function ask() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  }

  function draw() {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.bg;
    context.fillRect(0, 0, width, height);
    grid();
    const rowHeight = (height - AXIS) / (y1 - y0);
    context.save();
    context.beginPath();
    context.rect(0, 0, width, height - AXIS);
    context.clip();
    if (rowHeight >= NEAR) near(rowHeight); else far(rowHeight);
    context.restore();
  }

  function grid() {
    const low = (x0 * tree.horizon) / 1e9, high = (x1 * tree.horizon) / 1e9;
    const { all, digits } = ticks(low, high, Math.max(2, Math.floor(width / 110)));
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineWidth = 1;
    for (const tick of all) {
      const x = Math.round(X(tick * 1e9)) + 0.5;
      context.strokeStyle = palette.line;
      context.beginPath(); context.moveTo(x, 0); context.lineTo(x, height - AXIS); context.stroke();
      context.fillStyle = palette.dim;
      context.fillText("+" + tick.toFixed(digits) + " s", clamp(x, 24, width - 24), height - 8);
    }
  }

  function far(rowHeight) {
    const power = Math.max(0, Math.ceil(Math.log2(2 / rowHeight)));
    const group = 2 ** power, cells = table(power), tall = group * rowHeight;
    const from = Math.max(0, Math.floor(y0 / group)), to = Math.min(Math.ceil(tree.rows / group), Math.ceil(y1 / group));
    const bar = Math.max(tall - (tall > 3 ? 1 : 0), 1);
    const binX = Array.from({ length: BINS + 1 }, (_, bin) => X((bin / BINS) * tree.horizon));
    const marks = [];
    // Rectangles are drawn colour by colour, so that the canvas changes its colour five times instead of a thousand
    // times.
    const rects = [[], [], [], [], []];
    for (let row = from; row < to; row++) {
      const y = Y(row * group), base = row * BINS;
      let start = 0, kind = -1;
      for (let bin = 0; bin <= BINS; bin++) {
        const cell = bin < BINS ? cells[base + bin] : 0;
        const now = cell & 8 ? (cell & 32 ? cell & 7 : 0) : -1;
        if (now !== kind) {
          if (kind >= 0 && binX[bin] > 0 && binX[start] < width) rects[kind].push(binX[start], y, binX[bin] - binX[start]);
          start = bin; kind = now;
        }
        if (cell & 16) marks.push(binX[bin + 1], y + tall / 2);
      }
    }
    rects.forEach((list, level) => {
      context.fillStyle = level === 0 ? palette.pale : palette.levels[level];
      for (let i = 0; i < list.length; i += 3) context.fillRect(list[i], list[i + 1], list[i + 2], bar);
    });
    context.fillStyle = palette.fail;
    const mark = clamp(tall, 2.5, 5);
    for (let i = 0; i < marks.length; i += 2) context.fillRect(marks[i] - mark, marks[i + 1] - mark / 2, mark, mark);
    if (picked >= 0) {
      context.strokeStyle = palette.ink;
      context.lineWidth = 2;
      for (const n of onWay) line(n, Math.max(tall, 2) / 2);
    }
  }

  function line(n, offset) {
    const y = Y(tree.row[n]) + offset;
    context.beginPath(); context.moveTo(X(tree.begin[n]), y); context.lineTo(X(tree.end[n]), y); context.stroke();
  }

  function near(rowHeight) {
    const half = rowHeight / 2, thick = clamp(rowHeight * 0.45, 2, 9);
    const from = Math.max(0, Math.floor(y0)), to = Math.min(tree.rows, Math.ceil(y1));
    for (let r = from; r < to; r++) {
      for (let i = tree.starts[r]; i < tree.starts[r + 1]; i++) {
        const n = tree.byRow[i], chosen = selection.chosen[n];
        const y = Y(r) + half, a = X(tree.begin[n]), b = X(tree.end[n]);
        const parent = tree.from[n];
        if (parent < 0 || tree.row[parent] !== r) {
          context.strokeStyle = palette.track;
          context.lineWidth = 1;
          context.beginPath();
          context.moveTo(a, parent < 0 ? y - rowHeight : Math.max(Y(tree.row[parent]) + half, -10));
          context.lineTo(a, y);
          context.stroke();
        }
        context.fillStyle = chosen ? palette.levels[tree.level[n]] : palette.pale;
        context.fillRect(a, y - thick / 2, Math.max(b - a - 1.5, 1), thick);
        if (onWay.has(n)) { context.strokeStyle = palette.ink; context.lineWidth = 1.5; context.strokeRect(a, y - thick / 2 - 1, Math.max(b - a - 1.5, 1), thick + 2); }
        if (!chosen) continue;
        if (tree.columns.faults[n] > 0) { context.fillStyle = palette.fault; context.beginPath(); context.arc(a + 6, y, clamp(thick / 3, 1.2, 2.6), 0, 7); context.fill(); }
        if (tree.columns.flags[n] & 2) { context.fillStyle = palette.dim; context.fillRect(b - 3, y - thick / 2 - 1.5, 1.5, thick + 3); }
        if (tree.found[n]) { context.fillStyle = palette.fail; context.beginPath(); context.arc(b - 2, y, clamp(rowHeight / 3, 2.5, 5.5), 0, 7); context.fill(); }
        if (rowHeight >= 15 && b - a > 40) { context.fillStyle = palette.dim; context.font = "10px system-ui, sans-serif"; context.textAlign = "left"; context.fillText("b" + n, a + 12, y - thick / 2 - 1.5); }
      }
    }
  }

  function bound() {
    const wide = clamp(x1 - x0, 0.02, 1), tall = clamp(y1 - y0, Math.min(4, tree.rows), tree.rows);
    x0 = clamp(x0, 0, 1 - wide); x1 = x0 + wide;
    y0 = clamp(y0, 0, tree.rows - tall); y1 = y0 + tall;
  }
  function zoom(factor, y, x, sideways) {
    const row = rowAt(y), at = x0 + ((x - LEFT) / (width - LEFT - RIGHT)) * (x1 - x0);
    if (sideways) { x0 = at + (x0 - at) * factor; x1 = at + (x1 - at) * factor; }
    else { y0 = row + (y0 - row) * factor; y1 = row + (y1 - row) * factor; }
    bound(); ask();
  }
  function pan(dx, dy) {
    const sx = (dx / (width - LEFT - RIGHT)) * (x1 - x0), sy = (dy / (height - AXIS)) * (y1 - y0);
    x0 -= sx; x1 -= sx; y0 -= sy; y1 -= sy;
    bound(); ask();
  }
  function fit() { x0 = 0; x1 = 1; y0 = 0; y1 = tree.rows; ask(); }

  // Returns the branch nearest to a position.
  function nearest(x, y) {
    const row = rowAt(y), at = time(x), reach = Math.max(1, ((y1 - y0) / (height - AXIS)) * 6);
    let best = -1, score = Infinity;
    const from = Math.max(0, Math.floor(row - reach)), to = Math.min(tree.rows, Math.ceil(row + reach));
    for (let r = from; r < to; r++) {
      for (let i = tree.starts[r]; i < tree.starts[r + 1]; i++) {
        const n = tree.byRow[i];
        if (at < tree.begin[n] || at > tree.end[n]) continue;
        const away = Math.abs(r + 0.5 - row) - (tree.found[n] && selection.chosen[n] ? reach : 0) + (selection.chosen[n] ? 0 : reach);
        if (away < score) { score = away; best = n; }
      }
    }
    return best;
  }

  function pick(n, reveal) {
    if (!(n >= 0 && n < tree.count)) return;
    picked = n;
    onWay = new Set(tree.way(n));
    if (reveal) {
      const row = tree.row[n], tall = y1 - y0;
      if (reveal === "zoom" && (height - AXIS) / tall < NEAR) { const rows = Math.min((height - AXIS) / 14, tree.rows); y0 = row - rows / 2; y1 = y0 + rows; x0 = 0; x1 = 1; }
      else if (row < y0 || row >= y1) { y0 = row - tall / 2; y1 = y0 + tall; }
      bound();
    }
    describe(n);
    ask();
  }

  function describe(n) {
    const c = tree.columns, ids = tree.findings.get(n) || [];
    const entry = (name, ...value) => make("div", {}, make("dt", {}, name), make("dd", {}, ...value.filter((part) => part !== null)));
    const to = (branch) => make("a", { href: "#map", "data-branch": branch }, "b" + branch);
    const list = [];
    list.push(entry("From", c.from[n] < 0 ? "the root moment" : to(c.from[n])));
    const seconds = (ns) => ((c.root_ns + ns) / 1e9).toFixed(3);
    const whole = tree.begin[n] + c.length_ns[n];
    list.push(entry("Vtime", seconds(tree.begin[n]) + " s to " + seconds(tree.end[n]) + " s" + (whole > tree.end[n] ? ", checks until " + seconds(whole) + " s" : "")));
    const kinds = tree.kinds(n);
    const plan = tree.plans.get(n);
    list.push(entry("Faults", commas(c.faults[n]) + (kinds.length > 0 && !plan ? ": " + kinds.map(plain).join(", ") : ""),
      plan ? make("ul", { class: "plain" }, ...plan.map((fault) => make("li", { class: "planned" }, plain(fault)))) : null));
    list.push(entry("New points", commas(c.new_points[n])));
    list.push(entry("Cost", commas(c.cpu_ms[n]) + " ms of CPU, " + commas(c.instructions_m[n]) + " million instructions" + (c.final_m[n] > 0 ? ", " + commas(c.final_m[n]) + " million of them in its final phase" : "")));
    const flags = [c.flags[n] & 1 ? "can be extended" : "is not extended", c.flags[n] & 2 ? "checks followed" : "no checks", c.flags[n] & 4 ? "broke off" : null];
    list.push(entry("End", flags.filter(Boolean).join(", ")));
    const children = tree.children(n);
    if (children.length > 0) list.push(entry("Children", ...children.slice(0, 12).flatMap((child) => [to(child), " "]), children.length > 12 ? "and " + (children.length - 12) + " more" : ""));
    const found = ids.map((id) => {
      const finding = data.findings.find((finding) => finding.id === id);
      return make("p", { class: "fail" }, make("a", { href: "#finding-" + id }, "Finding " + id), ": " + plain(finding ? finding.property : ""));
    });
    const run = word(data.summary.run);
    const commands = make("ul", { class: "commands" }, copyable("everett replay " + run + " b" + n), copyable("everett show " + run + " b" + n));
    const path = tree.path(n);
    panel.replaceChildren(
      make("h3", {}, "Branch " + n), ...found, make("dl", { class: "small" }, ...list),
      make("details", {}, make("summary", {}, "Path"), make("code", {}, path)),
      ...Everett.logs.list(n), commands
    );
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.offsetX, y: event.offsetY, far: 0 };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
    drag.far += Math.abs(dx) + Math.abs(dy);
    drag.x = event.offsetX; drag.y = event.offsetY;
    if (drag.far > 3) pan(dx, dy);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && drag.far <= 3) pick(nearest(event.offsetX, event.offsetY));
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => (drag = null));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(clamp(event.deltaY || event.deltaX, -120, 120) / 240), event.offsetY, event.offsetX, event.shiftKey);
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, event.offsetY, event.offsetX, false));
  canvas.addEventListener("keydown", (event) => {
    const n = picked, middle = height / 2;
    const siblings = () => (tree.from[n] < 0 ? tree.roots : tree.children(tree.from[n]));
    const step = (by) => { const all = siblings(), place = all.indexOf(n) + by; if (all[place] !== undefined) pick(all[place], true); };
    const keys = {
      "+": () => zoom(0.6, middle, width / 2), "=": () => zoom(0.6, middle, width / 2), "-": () => zoom(1.6, middle, width / 2), 0: fit,
      PageDown: () => pan(0, -height * 0.8), PageUp: () => pan(0, height * 0.8),
      ArrowDown: () => (n < 0 ? pick(0, true) : step(1)), ArrowUp: () => (n < 0 ? pick(0, true) : step(-1)),
      ArrowRight: () => (n < 0 ? pick(0, true) : pick(tree.children(n)[0], true)), ArrowLeft: () => n >= 0 && pick(tree.from[n], true),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  controls.in.addEventListener("click", () => zoom(0.5, height / 2, width / 2));
  controls.out.addEventListener("click", () => zoom(2, height / 2, width / 2));
  controls.fit.addEventListener("click", fit);

  function filter() {
    selection = tree.select({ show: controls.show.value, fault: controls.fault.value, fresh: Number(controls.new.value) || 0 });
    tables = new Map();
    counter.textContent = selection.all ? commas(tree.count) + " branches" : commas(selection.number) + " of " + commas(tree.count) + " branches";
    ask();
  }
  for (const name of ["show", "fault", "new"]) controls[name].addEventListener("input", filter);
  document.getElementById("map-controls").addEventListener("submit", (event) => { event.preventDefault(); go(); });
  controls.go.addEventListener("change", go);
  function go() {
    const text = controls.go.value.trim();
    if (text === "") return;
    if (/^b?\d+$/.test(text)) return pick(Number(text.replace("b", "")), "zoom");
    for (let n = 0; n < tree.count; n++) if (tree.path(n) === text) return pick(n, "zoom");
    counter.textContent = "There is no branch " + plain(text);
  }
  addEventListener("click", (event) => {
    const link = event.target.closest("a[data-branch]");
    if (!link) return;
    if (link.closest("#map-branch")) event.preventDefault();
    pick(Number(link.dataset.branch), "zoom");
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { paint(); draw(); });
  new ResizeObserver(size).observe(canvas);
  paint();
  filter();
  size();
  // Shows a part of the map.
  function look(view) { ({ x0, x1, y0, y1 } = view); bound(); if (view.picked >= 0) pick(view.picked); ask(); }
  Everett.map = { pan, zoom, fit, pick, draw, look, view: () => ({ x0, x1, y0, y1, picked }) };
  performance.mark("everett-map");
})();

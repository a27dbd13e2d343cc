// Space-time diagrams of findings: a lane for each node, time to the right, an arrow for each message. An overview
// shows all messages, and the pane below a part of them. Where arrows would cover each other, the pane draws bars
// whose opacity shows the number of messages.
(() => {
  const { data, make, plain, clamp, ticks } = Everett;
  const GUTTER = 84, LANE = 46, TOP = 40, BOTTOM = 24, OVERVIEW = 34, FIRST = 40, DENSE = 260, LABELLED = 26;
  let serial = 0;
  // For each finding with a diagram: a function that shows the messages around a time.
  const moves = new Map();

  function diagram(box) {
    const finding = data.findings.find((finding) => finding.id === Number(box.dataset.finding));
    const scene = finding && finding.scene;
    if (!scene || scene.messages.length === 0) return;
    const messages = scene.messages.map((m) => ({ ...m, start: m.sent_ns === null ? m.at_ns : m.sent_ns }));
    const lanes = scene.lanes;
    const busy = lanes.map((_, lane) => messages.some((m) => m.from === lane || m.to === lane) || scene.faults.some((f) => f.lanes.includes(lane)));
    const shown = lanes.map((_, lane) => lane).filter((lane) => busy[lane]);
    const place = new Map(shown.map((lane, i) => [lane, i]));
    const times = messages.flatMap((m) => [m.start, m.at_ns]).concat(scene.found_ns);
    const low = Math.min(...times.slice(0, 50000)), high = Math.max(...times.slice(0, 50000));
    const pad = Math.max((high - low) * 0.02, 1000);
    const all = [low - pad, high + pad];
    let [a, b] = all, mark = null;
    // Returns a time range with about FIRST messages, most of them before `time`.
    function around(time) {
      let next = messages.findIndex((m) => m.at_ns > time);
      if (next < 0) next = messages.length;
      const from = messages[clamp(next - FIRST + 8, 0, messages.length - 1)].start, until = messages[clamp(next + 7, 0, messages.length - 1)].at_ns;
      const last = Math.max(until, time), wide = Math.max(last - from, 1000);
      return [from - wide * 0.03, last + wide * 0.03];
    }
    // Ends of the operations that the finding names. The first of them is where the problem began.
    const named = scene.operations.filter((op) => op.marked && op.begin_ns >= low && op.begin_ns <= high).map((op) => (op.end_ns === null ? op.begin_ns : op.end_ns));
    if (messages.length > 60) [a, b] = around(named.length > 0 ? named[0] : scene.found_ns);
    const id = "arrow" + serial++;
    const width = () => Math.max(box.clientWidth - 2, 320);
    const height = TOP + LANE * Math.max(shown.length - 1, 1) + BOTTOM;
    const lost = messages.filter((m) => m.fate === "drop").length;
    const about = messages.length + " messages between " + shown.length + " nodes, " + lost + " of them lost, and " + scene.faults.length + " faults. The logs below are on the same time axis.";
    const overview = make("svg:svg", { height: OVERVIEW, role: "img", "aria-label": "Overview of the messages over time" });
    const pane = make("svg:svg", { class: "pane", height, role: "img", "aria-label": "Space-time diagram: " + about });
    const where = make("span", { "aria-live": "polite" });
    const button = (label, text, act) => { const made = make("button", { type: "button", "aria-label": label }, text); made.addEventListener("click", act); return made; };
    const tools = make("div", { class: "tools" },
      button("Zoom in", "+", () => zoom(0.5)), button("Zoom out", "−", () => zoom(2)), button("Earlier", "←", () => move(-0.6)), button("Later", "→", () => move(0.6)),
      button("All messages", "All", () => to(...all)), button("Found: the messages before the finding", "Found", () => to(...around(scene.found_ns))),
      named.length > 0 ? button("Cause: the messages around the first operation that the finding names", "Cause", () => to(...around(named[0]))) : "", where);
    box.replaceChildren(tools, overview, pane);
    const Y = (lane) => TOP + LANE * (place.get(lane) || 0);
    const X = (at) => GUTTER + ((at - a) / (b - a)) * (width() - GUTTER - 14);
    const O = (at) => GUTTER + ((at - all[0]) / (all[1] - all[0])) * (width() - GUTTER - 14);
    const svg = (name, attributes, ...children) => make("svg:" + name, attributes, ...children);
    const title = (text) => svg("title", {}, plain(text));

    function to(from, until) {
      const span = clamp(until - from, Math.min(1000, all[1] - all[0]), all[1] - all[0]);
      a = clamp(from, all[0], all[1] - span);
      b = a + span;
      draw();
    }
    function zoom(factor, at = (a + b) / 2) { to(at + (a - at) * factor, at + (b - at) * factor); }
    function move(share) { to(a + (b - a) * share, b + (b - a) * share); }

    function drawOverview() {
      const w = width(), bins = new Uint32Array(Math.max(60, Math.floor((w - GUTTER) / 3)));
      const bin = (at) => clamp(Math.floor(((at - all[0]) / (all[1] - all[0])) * bins.length), 0, bins.length - 1);
      messages.forEach((m) => bins[bin(m.at_ns)]++);
      const most = Math.max(...bins, 1), step = (w - GUTTER - 14) / bins.length;
      const bars = [];
      bins.forEach((n, i) => { if (n > 0) { const tall = 3 + 21 * (n / most); bars.push(svg("rect", { class: "st-over", x: GUTTER + i * step, y: 27 - tall, width: Math.max(step - 0.5, 1), height: tall })); } });
      const faults = scene.faults.filter((f) => f.begin_ns <= all[1]).map((f) => {
        const from = Math.max(O(Math.max(f.begin_ns, all[0])), GUTTER), until = O(clamp(f.end_ns === null ? f.begin_ns : f.end_ns, all[0], all[1]));
        return svg("rect", { class: "st-fault", x: from, y: 29, width: Math.max(until - from, 2), height: 4 });
      });
      overview.setAttribute("viewBox", `0 0 ${w} ${OVERVIEW}`);
      overview.replaceChildren(...bars, ...faults, svg("rect", { class: "st-window", x: O(a), y: 1, width: Math.max(O(b) - O(a), 3), height: 27 }), svg("text", { class: "tick", x: 2, y: 20 }, "overview"));
    }

    function arrow(m, labelled) {
      const x = X(m.start), y = Y(m.from), tx = X(m.at_ns), ty = Y(m.to);
      const lost = m.fate === "drop";
      const ex = lost ? x + (tx - x) * 0.5 : tx, ey = lost ? y + (ty - y) * 0.5 : ty + (ty > y ? -2 : 2);
      const parts = [title(`${(m.at_ns / 1e9).toFixed(6)} s ${m.fate} ${lanes[m.from]} to ${lanes[m.to]}: ${m.text}`),
        svg("line", { class: "st-hit", x1: x, y1: y, x2: ex, y2: ey }), svg("line", { class: "st-msg " + m.fate, x1: x, y1: y, x2: ex, y2: ey, "marker-end": lost ? undefined : `url(#${id})` })];
      if (lost) parts.push(svg("path", { class: "st-cross", d: `M${ex - 3} ${ey - 3}l6 6m0 -6l-6 6` }));
      if (labelled) parts.push(svg("text", { class: "st-label", x: (x + ex) / 2 + 3, y: y + (ty - y) * (ty > y ? 0.42 : 0.62) }, short(m.text)));
      return svg("g", {}, ...parts);
    }
    // The flags and the length say most about a frame.
    function short(text) {
      const flags = /\[([A-Z,]*)\]/.exec(text), length = /len (\d+)/.exec(text);
      const name = flags ? flags[1].replace("PSH,ACK", "data") : text.split(" ")[0];
      return plain(name + (length && length[1] !== "0" ? " " + length[1] : "")).slice(0, 18);
    }

    function dense(inside) {
      const w = width(), columns = new Map();
      for (const m of inside) {
        const key = Math.floor(X(m.at_ns) / 4) + " " + m.from + " " + m.to + " " + (m.fate === "drop");
        columns.set(key, (columns.get(key) || 0) + 1);
      }
      const most = Math.max(...columns.values(), 1);
      return [...columns].map(([key, n]) => {
        const [column, from, to, lost] = key.split(" ");
        const x = clamp(Number(column) * 4 + 2, GUTTER, w);
        return svg("line", { class: lost === "true" ? "st-msg drop" : "st-dense", x1: x, x2: x, y1: Y(Number(from)), y2: Y(Number(to)), "stroke-width": 3, opacity: 0.12 + 0.6 * (Math.log1p(n) / Math.log1p(most)) },
          title(n + (n === 1 ? " message" : " messages") + " from " + lanes[from] + " to " + lanes[to]));
      });
    }

    function draw() {
      const w = width();
      pane.setAttribute("viewBox", `0 0 ${w} ${height}`);
      const inside = messages.filter((m) => m.at_ns >= a && m.start <= b && place.has(m.from) && place.has(m.to));
      const parts = [svg("defs", {}, svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { class: "st-arrow", d: "M0 1L8 4L0 7z" })))];
      const clip = "clip" + id;
      parts[0].append(svg("clipPath", { id: clip }, svg("rect", { x: GUTTER - 4, y: 0, width: w - GUTTER, height })));
      const { all: marks, digits } = ticks(a / 1e9, b / 1e9, Math.max(2, Math.floor(w / 130)));
      for (const mark of marks) parts.push(svg("line", { class: "grid", x1: X(mark * 1e9), x2: X(mark * 1e9), y1: 18, y2: height - BOTTOM + 6 }), svg("text", { class: "tick", x: X(mark * 1e9), y: height - 7, "text-anchor": "middle" }, mark.toFixed(digits) + " s"));
      for (const lane of shown) parts.push(svg("line", { class: "st-lane", x1: GUTTER, x2: w - 10, y1: Y(lane), y2: Y(lane) }), svg("text", { class: "label", x: GUTTER - 12, y: Y(lane) + 4, "text-anchor": "end" }, plain(lanes[lane]).slice(0, 12)));
      const body = svg("g", { "clip-path": `url(#${clip})` });
      const named = new Set();
      scene.faults.forEach((fault) => {
        const until = fault.end_ns === null ? fault.begin_ns : fault.end_ns;
        if (until < a || fault.begin_ns > b) return;
        const from = X(Math.max(fault.begin_ns, a)), wide = Math.max(X(Math.min(until, b)) - from, 3);
        const on = (fault.lanes.length > 0 ? fault.lanes : shown).filter((lane) => place.has(lane));
        for (const lane of on) body.append(svg("rect", { class: "st-fault", x: from, y: Y(lane) - 7, width: wide, height: 14, rx: 2 }, title(fault.words)));
        const y = on.length > 0 ? Y(on[0]) - 10 : 12;
        if (!named.has(Math.round(from / 60) + " " + y)) { named.add(Math.round(from / 60) + " " + y); body.append(svg("text", { class: "st-faultname", x: from + 1, y }, plain(fault.words))); }
      });
      for (const event of scene.events) if (event.lane !== null && place.has(event.lane) && event.at_ns >= a && event.at_ns <= b) body.append(svg("line", { class: "st-event", x1: X(event.at_ns), x2: X(event.at_ns), y1: Y(event.lane) - 4, y2: Y(event.lane) + 4 }, title(event.unit + ": " + event.text)));
      for (const op of scene.operations) if (op.marked && op.lane !== null && place.has(op.lane)) { const end = op.end_ns === null ? b : op.end_ns; if (end >= a && op.begin_ns <= b) body.append(svg("rect", { class: "st-op", x: X(op.begin_ns), y: Y(op.lane) - 3, width: Math.max(X(Math.min(end, b)) - X(op.begin_ns), 4), height: 6 }, title("named by the finding: " + op.f + " " + op.value))); }
      body.append(...(inside.length > DENSE ? dense(inside) : inside.map((m) => arrow(m, inside.length <= LABELLED))));
      parts.push(body);
      if (scene.found_ns >= a && scene.found_ns <= b) { const x = X(scene.found_ns); parts.push(svg("line", { class: "st-found", x1: x, x2: x, y1: 16, y2: height - BOTTOM + 6 }), svg("text", { class: "st-foundname", x: Math.min(x, w - 8), y: 12, "text-anchor": x > w - 60 ? "end" : "middle" }, "found")); }
      if (mark !== null && mark >= a && mark <= b) parts.push(svg("line", { class: "st-mark", x1: X(mark), x2: X(mark), y1: 16, y2: height - BOTTOM + 6 }));
      pane.replaceChildren(...parts);
      where.textContent = inside.length + " of " + messages.length + " messages, " + (a / 1e9).toFixed(3) + " s to " + (b / 1e9).toFixed(3) + " s";
      drawOverview();
    }

    const at = (event, svgElement, scale) => scale[0] + ((event.clientX - svgElement.getBoundingClientRect().left - GUTTER) / (width() - GUTTER - 14)) * (scale[1] - scale[0]);
    pane.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaY) > Math.abs(event.deltaX)) return;
      event.preventDefault();
      if (event.ctrlKey) zoom(Math.exp(clamp(event.deltaY, -120, 120) / 240), at(event, pane, [a, b])); else move(((event.deltaX || event.deltaY) / width()));
    }, { passive: false });
    let drag = null;
    pane.addEventListener("pointerdown", (event) => { drag = event.clientX; pane.setPointerCapture(event.pointerId); });
    pane.addEventListener("pointermove", (event) => { if (drag !== null) { move(-(event.clientX - drag) / (width() - GUTTER - 14)); drag = event.clientX; } });
    pane.addEventListener("pointerup", () => (drag = null));
    pane.addEventListener("dblclick", (event) => zoom(0.4, at(event, pane, [a, b])));
    const centre = (event) => { const middle = at(event, overview, all); to(middle - (b - a) / 2, middle + (b - a) / 2); };
    overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); centre(event); });
    overview.addEventListener("pointermove", (event) => { if (event.buttons > 0) centre(event); });
    moves.set(finding.id, (time) => { mark = time; to(...around(time)); });
    new ResizeObserver(() => { if (box.clientWidth > 0) draw(); }).observe(box);
    draw();
  }

  // A closed finding has no width, so its diagram is made when the finding is opened.
  const boxes = [...document.querySelectorAll(".spacetime")];
  for (const box of boxes) {
    const details = box.closest("details");
    const make = () => { if (!box.dataset.made) { box.dataset.made = "1"; diagram(box); } };
    if (details.open) make(); else details.addEventListener("toggle", make, { once: true });
  }
  addEventListener("beforeprint", () => boxes.forEach((box) => { if (!box.dataset.made) { box.dataset.made = "1"; diagram(box); } }));
  // Shows the messages around a time in the diagram of a finding. Shows the finding if it has no diagram.
  Everett.spacetime = (id, time) => {
    const box = document.querySelector('.spacetime[data-finding="' + id + '"]');
    if (!box) return Everett.goTo("finding-" + id);
    box.closest("details").open = true;
    if (!box.dataset.made) { box.dataset.made = "1"; diagram(box); }
    box.scrollIntoView({ block: "center", behavior: "instant" });
    if (moves.has(id)) moves.get(id)(time);
    box.tabIndex = -1;
    box.focus({ preventScroll: true });
  };
})();

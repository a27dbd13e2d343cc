// Logs: all lines of a finding's table, and the lines of any branch on a recorded timeline.
Everett.logs = (() => {
  const { data, tree, make, plain, seconds, commas } = Everett;
  // Recorded timelines of findings and of other branches.
  const recorded = [];
  for (const finding of data.findings) {
    if (finding.scene && finding.scene.is_recorded) recorded.push({ branch: finding.branch, events: finding.scene.events, faults: finding.scene.faults });
  }
  for (const log of data.logs) recorded.push({ branch: log.branch, events: log.events, faults: [] });
  // For each branch, the first recorded timeline that contains it.
  const passes = new Map();
  recorded.forEach((one, place) => tree.way(one.branch).forEach((n) => { if (!passes.has(n)) passes.set(n, place); }));
  const root = tree.columns.root_ns;

  // Returns the lines of a branch, or null if it is on no recorded timeline.
  function of(n) {
    if (!passes.has(n)) return null;
    const one = recorded[passes.get(n)];
    const from = root + tree.begin[n];
    // Checks run on a continuation that is thrown away, so only the recorded branch itself has their lines.
    const to = from + (one.branch === n ? tree.columns.length_ns[n] : tree.end[n] - tree.begin[n]);
    return one.events.filter((event) => event.at_ns > from && event.at_ns <= to);
  }

  const place = (event) => (event.lane === null ? "" : (data.summary.nodes[event.lane] || "?") + "/") + event.unit;
  const SHOWN = 500;
  function list(n) {
    const lines = of(n);
    const title = make("h4", {}, "Log");
    if (lines === null) {
      return [title, make("p", { class: "dim" }, "No recorded timeline passes this branch, so its log is not on this page. A replay shows it:")];
    }
    if (lines.length === 0) return [title, make("p", { class: "dim" }, "No program printed a line on this branch. A replay shows everything:")];
    const row = (event) => make("li", {}, make("span", { class: "time" }, seconds(event.at_ns)), " ", make("span", { class: "unit" }, plain(place(event))), " ", make("bdi", {}, plain(event.text)));
    const cut = Math.max(0, lines.length - SHOWN);
    return [
      title, cut > 0 ? make("p", { class: "dim" }, "The last " + SHOWN + " of " + commas(lines.length) + " lines.") : null,
      make("ol", { class: "branch-log", tabindex: "0", role: "region", "aria-label": "Log of branch " + n }, lines.slice(cut).map(row)),
      make("p", { class: "dim" }, "A replay shows its messages, too:"),
    ].filter(Boolean);
  }

  // Tables of logs first have only their last lines. Earlier lines are added on demand.
  const finding = (id) => data.findings.find((finding) => finding.id === id);
  function row(event, lanes) {
    const cells = [make("th", { scope: "row" }, seconds(event.at_ns))];
    const column = event.lane === null ? -1 : lanes.indexOf(event.lane);
    if (column < 0) cells.push(make("td", { class: "world", colspan: Math.max(lanes.length, 1) }, plain(event.text)));
    else lanes.forEach((_, i) => cells.push(i === column ? make("td", { title: plain(event.text) }, make("span", { class: "unit" }, plain(event.unit)), " ", make("bdi", {}, plain(event.text))) : make("td", {})));
    return make("tr", { "data-event": event.place }, cells);
  }
  function all(button) {
    const table = document.getElementById("logs-" + button.dataset.lines), scene = finding(Number(button.dataset.lines)).scene;
    const lanes = scene.lanes.map((_, lane) => lane).filter((lane) => scene.events.some((event) => event.lane === lane));
    const first = table.tBodies[0].rows[0], until = Number(button.dataset.first);
    const early = scene.events.map((event, place) => ({ ...event, place })).filter((event) => event.unit !== "fault" && event.place < until);
    const fragment = document.createDocumentFragment();
    early.forEach((event) => fragment.append(row(event, lanes)));
    table.tBodies[0].insertBefore(fragment, first);
    button.closest("p").remove();
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-lines]");
    if (button) all(button);
  });

  // Shows a line of a finding's log, and moves the focus to it.
  function show(id, event) {
    const details = document.getElementById("finding-" + id), table = document.getElementById("logs-" + id);
    if (details) details.open = true;
    if (!table) return;
    const button = details.querySelector("button[data-lines]");
    if (button && event < Number(button.dataset.first)) all(button);
    const row = table.querySelector('tr[data-event="' + event + '"]');
    if (!row) return;
    row.hidden = false;
    document.querySelectorAll("tr.hit").forEach((other) => other.classList.remove("hit"));
    row.classList.add("hit");
    row.tabIndex = -1;
    row.scrollIntoView({ block: "center", behavior: "instant" });
    row.focus({ preventScroll: true });
  }
  return { of, list, show };
})();

// Search over all texts of the page: findings, properties, lines of logs, messages and operations. The texts are
// collected when the search is first used. A query then passes over them once.
(() => {
  const { data, make, plain, commas } = Everett;
  const form = document.getElementById("search"), input = form.elements.text;
  const results = document.getElementById("search-results"), status = document.getElementById("search-status");
  const SHOWN = 60, EACH = 24;
  let entries = null;

  function collect() {
    const all = [];
    const add = (kind, text, about, show) => all.push({ kind, text, low: text.toLowerCase(), about, show });
    for (const finding of data.findings) {
      const id = finding.id, open = () => Everett.goTo("finding-" + id);
      for (const text of [finding.property + ": " + finding.text, finding.story, ...finding.facts]) add("finding", text, "finding " + id, open);
      if (finding.causality) add("finding", finding.causality.sentence + " " + (finding.causality.step || ""), "finding " + id + ", where it was decided", open);
    }
    for (const program of data.reached_code ? data.reached_code.programs : []) {
      for (const one of program.functions) if (one.name) add("function", one.name + (one.line ? " " + one.line : ""), program.path, () => Everett.goTo("functions"));
    }
    for (const finding of data.gone) add("finding", finding.property + ": " + finding.text, "older run", () => Everett.goTo("findability"));
    for (const property of data.properties) add("property", property.name + (property.why ? ", " + property.why : ""), property.state.replace("_", " "), () => Everett.goTo("properties"));
    const at = (ns) => (ns / 1e9).toFixed(6) + " s";
    for (const finding of data.findings) {
      const scene = finding.scene, id = finding.id;
      if (!scene) continue;
      const lane = (n) => scene.lanes[n] || "?";
      scene.events.forEach((event, place) => add("line", (event.lane === null ? "" : lane(event.lane) + "/") + event.unit + " " + event.text, at(event.at_ns) + ", finding " + id, () => Everett.logs.show(id, place)));
      scene.messages.forEach((m) => add("message", lane(m.from) + " > " + lane(m.to) + " " + m.fate + " " + m.text, at(m.at_ns) + ", finding " + id, () => Everett.spacetime(id, m.at_ns)));
      scene.operations.forEach((op) => add("operation", op.f + " " + op.value + " " + op.answer + " " + op.outcome, at(op.begin_ns) + ", finding " + id, () => Everett.spacetime(id, op.begin_ns)));
    }
    for (const log of data.logs) {
      for (const event of log.events) add("line", (event.lane === null ? "" : (data.summary.nodes[event.lane] || "?") + "/") + event.unit + " " + event.text, at(event.at_ns) + ", branch " + log.branch, () => Everett.map && Everett.map.pick(log.branch, "zoom"));
    }
    return all;
  }

  // Returns the entries that contain all words of a query, and their number. The list has some entries of each kind,
  // so that many messages do not hide a line.
  function find(query) {
    entries = entries || collect();
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return { found: [], count: 0 };
    const found = [], kinds = new Map();
    let count = 0;
    for (const entry of entries) {
      if (!words.every((word) => entry.low.includes(word))) continue;
      count++;
      const number = kinds.get(entry.kind) || 0;
      if (number >= EACH || found.length >= SHOWN) continue;
      kinds.set(entry.kind, number + 1);
      found.push(entry);
    }
    return { found, count };
  }

  // Cuts a long text around the first word of the query, and marks the word.
  function excerpt(entry, word) {
    const at = entry.low.indexOf(word), from = Math.max(0, at - 60);
    const piece = (a, b) => plain(entry.text.slice(a, b));
    return [from > 0 ? "…" : "", piece(from, at), make("mark", {}, piece(at, at + word.length)), piece(at + word.length, from + 200), from + 200 < entry.text.length ? "…" : ""];
  }

  function update() {
    const query = input.value.trim();
    const { found, count } = find(query);
    const word = query.toLowerCase().split(/\s+/)[0];
    results.hidden = query === "";
    status.textContent = query === "" ? "" : count === 0 ? "Nothing has this text" : commas(count) + (count === 1 ? " match" : " matches") + (found.length < count ? ", " + found.length + " listed" : "");
    results.querySelector("ol").replaceChildren(...found.map((entry) => {
      const button = make("button", { type: "button" }, make("span", { class: "kind" }, entry.kind), make("bdi", {}, excerpt(entry, word)), make("span", { class: "dim" }, plain(entry.about)));
      button.addEventListener("click", () => { close(); entry.show(); });
      return make("li", {}, button);
    }));
  }
  function close() { results.hidden = true; }

  input.addEventListener("input", update);
  input.addEventListener("focus", () => { if (input.value.trim() !== "") update(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = results.querySelector("button");
    if (first) first.click();
  });
  form.addEventListener("keydown", (event) => {
    const all = [input, ...results.querySelectorAll("button")], at = all.indexOf(document.activeElement);
    if (event.key === "Escape") { close(); input.focus(); }
    else if (event.key === "ArrowDown" && all[at + 1]) { event.preventDefault(); all[at + 1].focus(); }
    else if (event.key === "ArrowUp" && at > 0) { event.preventDefault(); all[at - 1].focus(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(input|select|textarea)$/i.test(event.target.tagName)) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  document.addEventListener("pointerdown", (event) => { if (!form.contains(event.target)) close(); });
  Everett.search = (query) => find(query).count;
  performance.mark("everett-ready");
})();

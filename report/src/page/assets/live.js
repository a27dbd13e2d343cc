// Keeps the served page up to date: asks the server for its state, fetches the newer page, and replaces parts of this
// one. It keeps the reader's position, and what is open, typed, selected, focused or scrolled.
(() => {
  const POLL_MS = 2000, ENDED_MS = 10000, SCROLLED_MS = 200;
  const root = document.documentElement;
  const bar = document.getElementById("live"), line = document.getElementById("live-state"), pause = document.getElementById("live-pause");
  let heard = new AbortController();
  let paused = false, held = false, last = Date.now(), scrolled = -SCROLLED_MS;
  window.Everett = everett(heard.signal);

  // Returns a key that finds the same element in the next page: its id, or its path below the nearest id.
  function key(element) {
    if (element.id) return [element.id];
    const near = element.closest("[id]");
    return near ? [near.id, element.tagName, [...near.querySelectorAll(element.tagName)].indexOf(element)] : null;
  }
  function find(name) {
    const near = name && document.getElementById(name[0]);
    return near && name.length > 1 ? near.querySelectorAll(name[1])[name[2]] : near;
  }

  // Returns the element at the top of the window, and its text. The text finds it again if elements are added before
  // it.
  function anchor() {
    const top = document.querySelector("nav").getBoundingClientRect().bottom + 2;
    const box = document.getElementById("main").getBoundingClientRect();
    const element = document.elementFromPoint(box.left + box.width / 2, top + 4);
    const block = element && element.closest("#main *") && element.closest("tr, li, p, h2, h3, h4, dl, figure, details, svg, canvas, section, header");
    if (!block) return null;
    const near = block.closest("[id]");
    const text = block.textContent.length < 2000 ? block.textContent : null;
    return { name: key(block), near: near && near.id, tag: block.tagName, text, top: block.getBoundingClientRect().top };
  }
  function again(place) {
    const near = document.getElementById(place.near);
    const same = near && place.text ? [...near.querySelectorAll(place.tag)].find((one) => one.textContent === place.text) : null;
    return same || find(place.name) || near;
  }

  // Branches that are added move the rows of the map, so the view follows a branch.
  function mapView() {
    const { map, tree } = Everett;
    if (!map) return null;
    const view = map.view();
    if (view.y1 - view.y0 >= tree.rows && view.x1 - view.x0 >= 1) return { whole: true, picked: view.picked };
    const inView = (row) => row >= view.y0 && row < view.y1;
    const middle = Math.min(Math.max(Math.floor((view.y0 + view.y1) / 2), 0), tree.rows - 1);
    const branch = view.picked >= 0 && inView(tree.row[view.picked]) ? view.picked : tree.byRow[tree.starts[middle]];
    return { ...view, branch, offset: view.y0 - tree.row[branch] };
  }
  function toMapView(view) {
    const { map, tree } = Everett;
    if (!map || !view) return;
    if (view.whole) { if (view.picked >= 0) map.pick(view.picked); return; }
    const y0 = tree.row[view.branch] + view.offset;
    map.look({ x0: view.x0, x1: view.x1, y0, y1: y0 + (view.y1 - view.y0), picked: view.picked });
  }

  function keep() {
    const main = document.getElementById("main");
    const all = (selector) => [...main.querySelectorAll(selector)];
    const typed = all("input, select").filter((field) => field.value !== (field.tagName === "SELECT" ? field.options[0].value : field.defaultValue));
    const focus = document.activeElement && main.contains(document.activeElement) ? document.activeElement : null;
    return {
      anchor: anchor(), map: mapView(), x: scrollX, y: scrollY,
      details: all("details").map((one) => [key(one), one.open]),
      typed: typed.map((field) => [key(field), field.name, field.value]),
      scrolled: all(".scroll, .logs").map((box) => [key(box), box.scrollTop, box.scrollLeft]),
      focus: focus && key(focus), selection: focus && "selectionStart" in focus ? [focus.selectionStart, focus.selectionEnd] : null,
      scenes: new Map(Everett.data.findings.map((finding) => [finding.id, JSON.stringify(finding.scene)])),
    };
  }

  function takeOver(text) {
    const next = new DOMParser().parseFromString(text, "text/html");
    const place = keep();
    heard.abort();
    heard = new AbortController();
    // Keeps a diagram that shows the same messages, with its visible part.
    const data = JSON.parse(next.getElementById("data").textContent);
    for (const finding of data.findings) {
      const box = document.querySelector(`.spacetime[data-finding="${finding.id}"]`);
      const other = next.querySelector(`.spacetime[data-finding="${finding.id}"]`);
      if (box && other && box.dataset.made && place.scenes.get(finding.id) === JSON.stringify(finding.scene)) other.replaceWith(box);
    }
    document.querySelector("nav").replaceWith(next.querySelector("nav"));
    for (const id of ["main", "data"]) document.getElementById(id).replaceWith(next.getElementById(id));
    document.title = next.title;
    root.dataset.version = next.documentElement.dataset.version;
    for (const [name, open] of place.details) { const one = find(name); if (one && one.tagName === "DETAILS") one.open = open; }
    window.Everett = everett(heard.signal);
    for (const [name, field, value] of place.typed) {
      const one = find(name);
      if (!one || one.name !== field) continue;
      one.value = value;
      // The field "Go to branch" would jump to its branch again.
      if (field !== "go") one.dispatchEvent(new Event("input", { bubbles: true }));
    }
    toMapView(place.map);
    const scroll = () => place.scrolled.forEach(([name, top, left]) => { const box = find(name); if (box) { box.scrollTop = top; box.scrollLeft = left; } });
    scroll();
    // Opening a finding scrolls its logs to their end once, so the logs are scrolled back afterwards.
    setTimeout(scroll, 60);
    const focused = place.focus && find(place.focus);
    if (focused) {
      focused.focus({ preventScroll: true });
      if (place.selection && place.selection[0] !== null) try { focused.setSelectionRange(...place.selection); } catch { /* a field without a selection */ }
    }
    scrollTo({ left: place.x, top: place.y, behavior: "instant" });
    const block = place.anchor && again(place.anchor);
    if (block) scrollBy({ top: block.getBoundingClientRect().top - place.anchor.top, behavior: "instant" });
    // Restoring the position may have fired no scroll event, from which the navigation marks the current section.
    dispatchEvent(new Event("scroll"));
    last = Date.now();
    performance.mark("everett-live");
  }

  function say(mood, text) {
    bar.dataset.mood = mood;
    if (line.textContent !== text) line.textContent = text;
  }
  const branches = () => Everett.commas(Everett.data.summary.branches) + " branches";
  // True while a new page would disturb the reader: during a drag, a selection, or scrolling. It would stop smooth
  // scrolling midway.
  const busy = () => held || !getSelection().isCollapsed || performance.now() - scrolled < SCROLLED_MS;

  async function ask() {
    let wait = POLL_MS;
    try {
      if (!document.hidden && !paused) {
        const state = await (await fetch("/state")).json();
        if (state.version !== root.dataset.version && !busy() && !paused) {
          const answer = await fetch("/");
          const text = await answer.text();
          if (answer.ok && !busy() && !paused) takeOver(text);
        }
        if (state.problem) say("trouble", "Not updated: " + Everett.plain(state.problem));
        else if (state.ended) { say("ended", branches() + "; the exploration has ended"); wait = ENDED_MS; }
        else say("live", branches() + " so far");
      }
    } catch {
      say("trouble", "The server does not answer; this page is of " + new Date(last).toLocaleTimeString());
    }
    if (paused) say("paused", branches() + "; updates are paused");
    setTimeout(ask, wait);
  }
  addEventListener("pointerdown", () => (held = true));
  addEventListener("scroll", () => (scrolled = performance.now()), { passive: true });
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => (held = false));
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (paused) say("paused", branches() + "; updates are paused");
  });
  say("live", branches());
  setTimeout(ask, POLL_MS / 4);
})();

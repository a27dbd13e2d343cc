"use strict";
// Object that the parts of the script share: the report's data, and small helpers.
const Everett = (() => {
  document.documentElement.classList.add("script");
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";

  // Creates an element. Text children are set as text, never as markup.
  function make(name, attributes, ...children) {
    const svg = name.startsWith("svg:");
    const element = svg ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
    return element;
  }

  // Escapes characters that could disguise a text, as the rest of the page does.
  function plain(text) {
    return String(text).replace(
      /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\udb40[\udc00-\udc7f]/g,
      (c) => "\\u{" + c.codePointAt(0).toString(16) + "}"
    );
  }

  const seconds = (ns) => (ns / 1e9).toFixed(3);
  const commas = (n) => n.toLocaleString("en-US");
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  // Quotes a word for a shell if necessary.
  const word = (text) => (/^[\w\-./:+,@%=]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'");

  function copyable(command) {
    return make("li", {}, make("code", {}, plain(command)), make("button", { type: "button", class: "copy" }, "Copy"));
  }

  // Returns about `wanted` round numbers between low and high.
  function ticks(low, high, wanted) {
    const rough = (high - low) / wanted;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999) || power * 10;
    const all = [];
    for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9 && all.length < 3 * wanted; tick += step) all.push(tick);
    return { all, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  }

  addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const text = button.previousElementSibling.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.previousElementSibling);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });

  addEventListener("input", (event) => {
    const table = event.target.dataset && document.getElementById(event.target.dataset.filter || "");
    if (!table) return;
    const wanted = event.target.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });

  // Scrolls logs to their end, which is nearest to the finding.
  const toEnd = (details) => details.querySelectorAll(".logs").forEach((logs) => (logs.scrollTop = logs.scrollHeight));
  document.querySelectorAll("details.finding").forEach((details) => {
    toEnd(details);
    details.addEventListener("toggle", () => toEnd(details), { once: true });
  });

  // Goes to a section or a finding, as a link does. Also works if the address names it already.
  function goTo(id) {
    const target = document.getElementById(id);
    if (!target) return;
    location.hash = id;
    open();
    target.scrollIntoView({ behavior: "instant" });
    if (!target.hasAttribute("tabindex")) target.tabIndex = -1;
    target.focus({ preventScroll: true });
  }

  // Opens the finding that the address names.
  function open() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  }
  addEventListener("hashchange", open);
  open();

  // Marks the current section in the navigation.
  const links = [...document.querySelectorAll("nav a")];
  const sections = links.map((link) => document.getElementById(link.hash.slice(1)));
  function mark() {
    const middle = innerHeight / 3;
    let now = 0;
    sections.forEach((section, i) => { if (section && section.getBoundingClientRect().top < middle) now = i; });
    links.forEach((link, i) => (i === now ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  }
  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; mark(); });
  }, { passive: true });
  mark();

  addEventListener("beforeprint", () => document.querySelectorAll("details.finding").forEach((details) => (details.open = true)));
  return { goTo, data, make, plain, seconds, commas, clamp, colour, word, copyable, ticks };
})();

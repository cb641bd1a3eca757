// The search field of the page: nodes, kernels, tensors and rules by any part of their names.

const MOST_FOUND = 12;

function entries(plan) {
  const nodes = plan.data.nodes.map((node) => ({ what: node.operator || "node", name: node.node, to: ["graph", "node", node.node] }));
  const launches = plan.data.launches.map((launch) => ({ what: `kernel, ${plan.operators(launch)}`, name: launch.name, to: ["launch", launch.number] }));
  const rules = Object.keys(plan.data.rules).map((rule) => ({ what: "rule", name: rule, to: ["rule", rule] }));
  const tensors = Object.keys(plan.data.tensors).map((tensor) => ({ what: "tensor", name: tensor, to: ["tensor", tensor] }));
  return [...launches, ...rules, ...nodes, ...tensors].map((entry) => ({ ...entry, text: `${entry.name} ${entry.what}`.toLowerCase() }));
}

// The entries that hold all words, those whose name begins with the text first.
function found(all, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const hits = all.filter((entry) => words.every((word) => entry.text.includes(word)));
  const rank = (entry) => (entry.name.toLowerCase() === text.toLowerCase() ? 0 : entry.name.toLowerCase().startsWith(words[0]) ? 1 : 2);
  return hits.map((entry, number) => [rank(entry), number, entry]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((hit) => hit[2]);
}

function makeSearch(root) {
  let all = null;
  let shown = [];
  let active = -1;
  const input = h("input", {
    type: "search", class: "field", id: "search-field", role: "combobox", autocomplete: "off", spellcheck: "false", "aria-expanded": "false",
    "aria-controls": "search-found", "aria-autocomplete": "list", "aria-label": "Search nodes, kernels, rules and tensors", placeholder: "Search nodes, kernels, rules",
  });
  const list = h("ul", { id: "search-found", role: "listbox", "aria-label": "Found", class: "found", hidden: true });
  const key = h("kbd", { "aria-hidden": "true" }, "/");

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function go(entry) {
    close();
    input.value = "";
    location.hash = address(...entry.to);
  }

  function mark(place) {
    active = place;
    [...list.children].forEach((item, number) => item.getAttribute("role") === "option" && item.setAttribute("aria-selected", String(number === place)));
    if (place < 0) { input.removeAttribute("aria-activedescendant"); return; }
    input.setAttribute("aria-activedescendant", `found-${place}`);
    list.children[place].scrollIntoView({ block: "nearest" });
  }

  function draw() {
    all = all || entries(report.plan);
    const hits = found(all, input.value);
    shown = hits.slice(0, MOST_FOUND);
    const items = shown.map((entry, number) => h("li", { role: "option", id: `found-${number}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); go(entry); } }, h("span", { class: "found-name" }, ending(entry.name, 60)), h("span", { class: "found-what" }, ending(entry.what, 40))));
    if (!hits.length && input.value.trim()) items.push(h("li", { role: "option", "aria-disabled": "true", "aria-selected": "false", class: "note" }, "Nothing has this in its name"));
    replace(list, items);
    list.hidden = !items.length;
    input.setAttribute("aria-expanded", String(items.length > 0));
    mark(shown.length ? 0 : -1);
    if (input.value.trim()) say(`${figure(hits.length)} found`);
  }

  input.addEventListener("input", draw);
  input.addEventListener("focus", () => input.value && draw());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { input.value = ""; close(); }
    if (list.hidden || !shown.length) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      mark((active + (event.key === "ArrowDown" ? 1 : shown.length - 1)) % shown.length);
    }
    if (event.key === "Enter" && active >= 0) { event.preventDefault(); go(shown[active]); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    input.focus();
  });
  replace(root, input, key, list);
  return () => { all = null; close(); };
}

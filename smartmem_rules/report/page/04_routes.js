// What is shown stands behind the # of the address: views can be linked to, and "back" works.

const report = { plans: [], plan: null, levels: [], against: null };

function address(...parts) {
  const before = report.plan && report.plan.number === 2 ? ["2"] : [];
  return `#/${[...before, ...parts].map((part) => encodeURIComponent(part)).join("/")}`;
}

// {plan: 1 or 2, view, parts}, or null where the address names none.
function route() {
  const text = location.hash;
  if (!text.startsWith("#/")) return null;
  let parts;
  try {
    parts = text.slice(2).split("/").map(decodeURIComponent);
  } catch {
    return null;
  }
  const plan = parts[0] === "2" && report.plans.length > 1 ? 2 : 1;
  if (parts[0] === "2" || parts[0] === "1") parts.shift();
  return { plan, view: parts[0] || "overview", parts: parts.slice(1) };
}

function nodeLink(name, length = 48) {
  return h("a", { class: "name", href: address("graph", "node", name), title: name.slice(0, 400) }, ending(name, length));
}

function launchLink(number, words) {
  const launch = report.plan.data.launches[number];
  return h("a", { class: "name", href: address("launch", number), title: launch.name }, words || launch.name);
}

function ruleLink(name) {
  return h("a", { class: "name", href: address("rule", name) }, name);
}

function linked(links) {
  return links.flatMap((link, number) => (number ? [", ", link] : [link]));
}

// A list that shows its first few, and the rest when it is asked to.
function shortList(items, make, least = 8) {
  const list = h("ul", { class: "plain" }, items.slice(0, least).map((item) => h("li", null, make(item))));
  if (items.length <= least) return list;
  const more = h("button", { class: "button small", type: "button" }, `Show ${figure(items.length - least)} more`);
  more.addEventListener("click", () => {
    append(list, items.slice(least).map((item) => h("li", null, make(item))));
    list.children[least].querySelector("a")?.focus();
    more.remove();
  });
  return h("div", null, list, more);
}

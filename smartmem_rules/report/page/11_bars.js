// Bars: parts of a whole beside each other, and one figure beside others.

// parts: {size, colour, title, href, label}. Parts that are too thin for a label have only a title.
function strip(parts, words) {
  const whole = parts.reduce((sum, part) => sum + part.size, 0) || 1;
  return h("ol", { class: "strip", "aria-label": words }, parts.filter((part) => part.size > 0).map((part) => {
    const inner = [part.size / whole > 0.02 ? h("span", { class: "strip-word", "aria-hidden": "true" }, part.label) : null, h("span", { class: "unseen" }, part.title)];
    const look = { "--part": part.colour };
    return h("li", { class: `strip-part ${part.look || ""}`, look: { "flex-grow": String(part.size), ...look }, title: part.title }, part.href ? h("a", { href: part.href }, inner) : h("span", null, inner));
  }));
}

function legend(parts) {
  return h("ul", { class: "legend" }, parts.map((part) => h("li", null, h("span", { class: `swatch ${part.look || ""}`, look: { "--part": part.colour } }), part.href ? h("a", { href: part.href }, part.word) : part.word, " ", h("b", null, part.value))));
}

// A thin bar whose length is a share of the most.
function meter(value, most, colour) {
  const share = most > 0 ? Math.max(0, Math.min(1, value / most)) : 0;
  return h("span", { class: "meter", "aria-hidden": "true" }, h("span", { look: { width: `${share * 100}%`, ...(colour ? { "--part": colour } : {}) } }));
}

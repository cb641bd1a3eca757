// The same model at several levels.

function showLevels(main) {
  const { levels } = report;
  if (!levels.length) {
    replace(main, h("div", { class: "page" }, h("h1", null, "Levels"), h("p", null, "No levels were compared: the report is of a saved plan, or was made with ", h("code", null, "--no-levels"), ".")));
    return;
  }
  const own = report.plans[0].figures.level;
  const rows = [
    ["Kernels", "kernels", figure],
    ["of them only moving data", "layout_operators_after", figure],
    ["Bytes moved", "bytes_moved", bytes],
    ["Intermediates", "intermediate_bytes", bytes],
    ["Modelled", "modelled_us", (us) => (us === null ? NONE : milliseconds(us / 1000))],
    ["Measured", "measured_ms", milliseconds],
    ["Planning", "seconds", (seconds) => milliseconds(seconds * 1000)],
  ].filter(([, key]) => levels.some((level) => level[key] !== null));
  const head = h("tr", null, h("td", null), levels.map((level) => h("th", { scope: "col", class: level.level === own ? "own" : null }, level.level, level.level === own ? h("span", { class: "note" }, " this plan") : null)));
  const body = rows.map(([name, key, words]) => {
    const most = Math.max(...levels.map((level) => level[key] || 0));
    return h("tr", null, h("th", { scope: "row" }, name), levels.map((level) => h("td", { class: level.level === own ? "own" : null }, h("span", { class: "figure" }, words(level[key])), level[key] === null ? null : meter(level[key], most, level.level === own ? "var(--accent)" : null))));
  });
  replace(main, h("div", { class: "page wide" },
    h("h1", null, "Levels compared"),
    h("p", { class: "lead" }, "Each level does more than the one before it; all compute the same."),
    h("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": "Levels compared" }, h("table", { class: "levels" }, h("caption", { class: "unseen" }, "Figures of the plan at each level"), h("thead", null, head), h("tbody", null, body))),
    levels.every((level) => level.measured_ms === null || level.level === own) ? h("p", { class: "note" }, "Only this plan was measured; ", h("code", null, "--measure-levels"), " measures all.") : null));
}

// Tables that can be sorted by their heads and filtered by words.

const ROWS = 250;

// columns: {name, cell(row) -> content, sort(row) -> number or text, isNumber, isMinor, note}.
// rowLook: (row) -> class of the row, or null.
function sortable({ caption, columns, rows, sortedBy = null, downwards = false, words = null, rowLook = () => null }) {
  const state = { by: sortedBy, downwards, text: "", all: false };
  const body = h("tbody");
  const told = h("p", { class: "note", role: "status" });
  const more = h("button", { class: "button", type: "button", onclick: () => { state.all = true; draw(); } });
  const heads = columns.map((column, number) => {
    const look = `${column.isNumber ? "number" : ""} ${column.isMinor ? "minor" : ""}`;
    if (!column.sort) return h("th", { scope: "col", class: look }, column.name);
    const sort = () => {
      state.downwards = state.by === number ? !state.downwards : Boolean(column.isNumber);
      state.by = number;
      draw();
      say(`sorted by ${column.name}, ${state.downwards ? "descending" : "ascending"}`);
    };
    return h("th", { scope: "col", class: look }, h("button", { type: "button", class: "sort", onclick: sort }, column.name));
  });

  function chosen() {
    const asked = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = asked.length ? rows.filter((row) => { const text = words(row).toLowerCase(); return asked.every((word) => text.includes(word)); }) : [...rows];
    if (state.by === null) return found;
    const key = columns[state.by].sort;
    const sign = state.downwards ? -1 : 1;
    return found.sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
    });
  }

  function draw() {
    const found = chosen();
    const shown = state.all ? found : found.slice(0, ROWS);
    replace(body, shown.map((row) => h("tr", { class: rowLook(row) }, columns.map((column, number) => {
      const look = `${column.isNumber ? "number" : ""} ${column.isMinor ? "minor" : ""}`.trim() || null;
      return number === 0 ? h("th", { scope: "row", class: look }, column.cell(row)) : h("td", { class: look }, column.cell(row));
    }))));
    heads.forEach((head, number) => {
      if (columns[number].sort) head.setAttribute("aria-sort", state.by !== number ? "none" : state.downwards ? "descending" : "ascending");
    });
    more.hidden = shown.length === found.length;
    more.textContent = `Show all ${figure(found.length)}`;
    told.textContent = state.text ? `${figure(found.length)} of ${figure(rows.length)}` : "";
  }

  const parts = [];
  if (words) {
    const input = h("input", { type: "search", class: "field", autocomplete: "off", spellcheck: "false" });
    input.addEventListener("input", () => { state.text = input.value; draw(); });
    parts.push(h("div", { class: "filter" }, h("label", null, h("span", null, "Filter"), input), told));
  }
  const table = h("table", null, h("caption", { class: "unseen" }, caption), h("thead", null, h("tr", null, heads)), body);
  draw();
  return h("div", { class: "table" }, parts, h("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": caption }, table), more);
}

// Names and their values, one below the other.
function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter((pair) => pair && pair[1] !== null && pair[1] !== undefined).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

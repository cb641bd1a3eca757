// Two plans: their figures, the kernels that share nodes, and what each stage did differently.

function showCompare(main) {
  if (!report.against) {
    replace(main, h("div", { class: "page" }, h("h1", null, "Two plans"), h("p", null, "There is only one plan in this report. To compare it with another, name a second model or plan, or what is different the second time:"), h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": "Commands" }, "smartmem report MODEL -o report.html --against OTHER\nsmartmem report MODEL -o report.html --to-level dnnfusion\nsmartmem report MODEL -o report.html --to-disable RULE")));
    return;
  }
  const [first, second] = report.plans;
  replace(main, h("div", { class: "page wide" },
    h("h1", null, "Two plans"),
    h("p", { class: "lead" }, h("span", { class: "side one" }, "1"), ` ${planWords(first)}`, h("br"), h("span", { class: "side two" }, "2"), ` ${planWords(second)}`),
    figuresCompared(first, second),
    kernelsCompared(first, second),
    stagesCompared(report.against.stages)));
}

function figuresCompared(first, second) {
  const figuresOf = (plan) => ({ kernels: plan.figures.kernels, moving: plan.figures.layout_operators.after, moved: plan.figures.bytes_moved, memory: plan.figures.intermediate_bytes.reused, modelled: plan.modelled(), measured: plan.data.measured?.median_ms ?? null });
  const [one, two] = [figuresOf(first), figuresOf(second)];
  const rows = [["Kernels", "kernels", figure], ["of them only moving data", "moving", figure], ["Bytes moved", "moved", bytes], ["Intermediates", "memory", bytes], ["Modelled", "modelled", milliseconds], ["Measured", "measured", milliseconds]];
  const change = (key) => (one[key] && two[key] ? (one[key] === two[key] ? "the same" : `${times(two[key] / one[key])}`) : NONE);
  return h("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": "Figures of both plans" }, h("table", null, h("caption", { class: "unseen" }, "Figures of both plans"),
    h("thead", null, h("tr", null, h("td", null), h("th", { scope: "col", class: "number" }, "1"), h("th", { scope: "col", class: "number" }, "2"), h("th", { scope: "col", class: "number" }, "2 beside 1"))),
    h("tbody", null, rows.map(([name, key, words]) => h("tr", null, h("th", { scope: "row" }, name), h("td", { class: "number" }, words(one[key])), h("td", { class: "number" }, words(two[key])), h("td", { class: "number" }, change(key)))))));
}

// Kernels of both plans that compute parts of the same nodes stand together.
function kernelsCompared(first, second) {
  const owner = new Map();
  const groups = [];
  const join = (side, launch) => {
    const met = [...new Set(launch.origin.filter((node) => owner.has(node)).map((node) => owner.get(node)))].map(rootOf);
    const group = met[0] || { sides: [[], []], into: null };
    if (!met.length) groups.push(group);
    new Set(met.slice(1)).forEach((other) => { if (other !== group) { other.into = group; other.sides.forEach((all, number) => group.sides[number].push(...all)); } });
    group.sides[side].push(launch);
    launch.origin.forEach((node) => owner.set(node, group));
  };
  first.data.launches.forEach((launch) => join(0, launch));
  second.data.launches.forEach((launch) => join(1, launch));
  const rows = groups.filter((group) => !group.into).map((group) => ({ sides: group.sides, times: [sumOf(first, group.sides[0]), sumOf(second, group.sides[1])] }));
  const links = (plan, launches) => linked(launches.slice(0, 12).map((launch) => h("a", { class: "name", href: `#/${plan.number}/launch/${launch.number}`, title: plan.operators(launch) }, launch.name)).concat(launches.length > 12 ? [`${launches.length - 12} more`] : []));
  return h("section", null, h("h2", null, "Kernels that compute the same nodes"), sortable({
    caption: "Kernels of both plans that compute the same nodes",
    rows,
    words: (row) => row.sides.flat().map((launch) => `${launch.name} ${launch.origin.join(" ")}`).join(" "),
    columns: [
      { name: "Plan 1", cell: (row) => (row.sides[0].length ? links(first, row.sides[0]) : NONE), sort: (row) => row.sides[0][0]?.number ?? null },
      { name: "Plan 2", cell: (row) => (row.sides[1].length ? links(second, row.sides[1]) : NONE), sort: (row) => row.sides[1][0]?.number ?? null },
      { name: "Time of 1", cell: (row) => milliseconds(row.times[0]), sort: (row) => row.times[0], isNumber: true },
      { name: "Time of 2", cell: (row) => milliseconds(row.times[1]), sort: (row) => row.times[1], isNumber: true },
      { name: "2 less 1", cell: (row) => difference(row.times), sort: (row) => (row.times.includes(null) ? null : row.times[1] - row.times[0]), isNumber: true },
    ],
  }));
}

function rootOf(group) {
  return group.into ? rootOf(group.into) : group;
}

function sumOf(plan, launches) {
  const all = launches.map((launch) => plan.time(launch));
  return all.includes(null) || !all.length ? null : all.reduce((sum, time) => sum + time, 0);
}

function difference([one, two]) {
  if (one === null || two === null) return NONE;
  return `${two < one ? "−" : "+"}${milliseconds(Math.abs(two - one))}`;
}

const DIFF_LINES = 400;

function stagesCompared(stages) {
  if (!stages.length) return h("section", null, h("h2", null, "Stages"), h("p", null, "The texts of the stages are not known of saved plans."));
  return h("section", null, h("h2", null, "What each stage did differently"), h("p", { class: "note" }, "Lines with − are the first plan's, with + the second's; kernels are compared without their numbers."),
    stages.map(({ stage, same, removed, added, lines }) => {
      if (same) return h("p", { class: "stage-same" }, h("b", null, stage), " is the same");
      const block = h("div");
      const details = h("details", { class: "stage" }, h("summary", null, h("b", null, stage), " ", h("span", { class: "minus" }, `−${removed}`), " ", h("span", { class: "plus" }, `+${added}`)), block);
      details.addEventListener("toggle", () => details.open && !block.firstChild && append(block, [diff(lines, stage)]));
      return details;
    }));
}

function diff(lines, stage) {
  const look = (line) => ({ "+": "plus", "-": "minus", "@": "directive" }[line[0]] || null);
  const block = h("pre", { class: "code diff", tabindex: "0", role: "region", "aria-label": `Differences of the stage ${stage}` });
  const add = (some) => append(block, some.map((line) => h("span", { class: look(line) }, `${line}\n`)));
  add(lines.slice(0, DIFF_LINES));
  if (lines.length <= DIFF_LINES) return block;
  const more = h("button", { class: "button small", type: "button", onclick: () => { add(lines.slice(DIFF_LINES)); more.remove(); } }, `Show ${figure(lines.length - DIFF_LINES)} more lines`);
  return h("div", null, block, more);
}

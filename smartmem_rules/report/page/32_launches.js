// The launches in the order of execution.

function showLaunches(main) {
  const plan = report.plan;
  const columns = [
    { name: "Kernel", cell: (launch) => [h("span", { class: "number-before" }, String(launch.number)), launchLink(launch.number)], sort: (launch) => launch.number },
    { name: "Computes", cell: (launch) => h("span", { class: "one-line", title: plan.operators(launch) }, plan.operators(launch)), sort: (launch) => plan.operators(launch) },
    { name: "Form", cell: (launch) => [h("span", { class: "swatch", look: { "--part": plan.formColour(launch.form) } }), launch.form], sort: (launch) => launch.form, isMinor: true },
    { name: "Layout written", cell: (launch) => h("code", null, writtenLayouts(plan, launch)), sort: (launch) => plan.data.tensors[launch.writes[0]]?.layout || "", isMinor: true },
    { name: "Work-items", cell: (launch) => `${launch.global_size.join(" × ")}${launch.local_size ? ` by ${launch.local_size.join(" × ")}` : ""}`, isNumber: true, isMinor: true },
    { name: "Operations", cell: (launch) => operations(launch.operations), sort: (launch) => launch.operations, isNumber: true, isMinor: true },
    { name: "Moves", cell: (launch) => bytes(launch.bytes_moved), sort: (launch) => launch.bytes_moved, isNumber: true, isMinor: true },
  ];
  if (plan.isModelled) columns.push({ name: "Modelled", cell: (launch) => (launch.modelled_us === null ? NONE : milliseconds(launch.modelled_us / 1000)), sort: (launch) => launch.modelled_us, isNumber: true, isMinor: plan.isMeasured });
  if (plan.isMeasured) columns.push(
    { name: "Measured", cell: (launch) => milliseconds(launch.measured?.ms), sort: (launch) => launch.measured?.ms ?? null, isNumber: true },
    { name: "Of all", cell: (launch) => percent(launch.measured?.share), sort: (launch) => launch.measured?.share ?? null, isNumber: true, isMinor: true },
    { name: "Of the roof", cell: (launch) => percent(launch.measured?.roof_share), sort: (launch) => launch.measured?.roof_share ?? null, isNumber: true },
  );
  replace(main, h("div", { class: "page wide" },
    h("h1", null, count(plan.data.launches.length, "kernel"), ", in the order of execution"),
    plan.isMeasured ? h("p", { class: "note" }, "The roof is what the device can do at most for a kernel's operations and bytes; 100 % means that the kernel is as fast as the device allows.") : h("p", { class: "note" }, "Nothing was measured", plan.isModelled ? "; the times are the cost model's." : "."),
    sortable({
      caption: "Kernels in the order of execution",
      rows: plan.data.launches,
      sortedBy: 0,
      words: (launch) => `${launch.name} ${launch.form} ${launch.kernels.join(" ")} ${launch.origin.join(" ")} ${plan.operators(launch)}`,
      rowLook: (launch) => (launch.form === "moves only" ? "moves" : null),
      columns,
    })));
}

function writtenLayouts(plan, launch) {
  const all = [...new Set(launch.writes.map((tensor) => plan.data.tensors[tensor]?.layout || ""))];
  return all.length > 1 ? `${all[0]} +${all.length - 1}` : all[0];
}

function showLaunch(main, [number]) {
  const plan = report.plan;
  const launch = plan.data.launches[number];
  if (!launch) { showMissing(main, `kernel ${number}`); return; }
  const beside = (to, words) => (plan.data.launches[to] ? h("a", { class: "button", href: address("launch", to) }, words) : h("span", { class: "button off" }, words));
  const rules = [...new Set(launch.origin.flatMap((name) => plan.nodeByName.get(name)?.rules || []))];
  replace(main, h("div", { class: "page" },
    h("p", { class: "kicker" }, `Kernel ${launch.number} of ${plan.data.launches.length} · ${launch.form}`),
    h("h1", { class: "name-title" }, launch.name),
    h("p", { class: "lead" }, plan.operators(launch)),
    h("p", { class: "chips" }, beside(launch.number - 1, "← before"), beside(launch.number + 1, "next →"), h("a", { class: "button", href: address("graph", "launch", launch.number) }, "Show in the graph")),
    launchFacts(plan, launch, false),
    h("div", { class: "columns" },
      h("section", null, h("h2", null, `Made of ${count(launch.origin.length, "node")}`), shortList(launch.origin, (name) => [h("span", { class: "type" }, plan.nodeByName.get(name)?.operator || ""), " ", nodeLink(name, 44)], 12)),
      h("section", null, h("h2", null, "Rules on the way"), rules.length ? rules.map((rule) => ruleCard(plan, rule)) : h("p", null, "No rule rewrote what it computes."))),
    tensorTable(plan, launch),
    layoutChoices(launch),
    h("section", null, h("h2", null, "Schedule"), Object.entries(launch.schedule).map(([name, { sizes, figures }]) => [h("h3", { class: "name" }, name), h("p", { class: "code-line" }, sizes), figures.length ? h("ul", { class: "plain candidates" }, figures.map((line) => h("li", { class: line.includes("(chosen)") ? "picked" : null }, line))) : null])),
    h("section", null, h("h2", null, "What it computes"), h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": "The kernel as equations" }, launch.text)),
    openCl(plan, launch)));
}

function tensorTable(plan, launch) {
  const rows = [...launch.reads.map((name) => ["reads", name]), ...launch.writes.map((name) => ["writes", name])].map(([way, name]) => ({ way, name, stored: plan.data.tensors[name] }));
  return h("section", null, h("h2", null, "Tensors"), sortable({
    caption: `Tensors of ${launch.name}`,
    rows,
    columns: [
      { name: "Tensor", cell: (row) => h("a", { class: "name", href: address("tensor", row.name), title: row.name.slice(0, 400) }, ending(row.name, 44)), sort: (row) => row.name },
      { name: "Use", cell: (row) => row.way, sort: (row) => row.way },
      { name: "Type", cell: (row) => h("span", { class: "type" }, row.stored?.type || "") },
      { name: "Layout", cell: (row) => h("code", null, row.stored?.layout || "") },
      { name: "Role", cell: (row) => row.stored?.role || "", isMinor: true },
      { name: "Takes", cell: (row) => bytes(row.stored?.bytes), sort: (row) => row.stored?.bytes ?? null, isNumber: true },
    ],
  }));
}

function layoutChoices(launch) {
  const open = Object.entries(launch.layouts);
  if (!open.length) return null;
  return h("section", null, h("h2", null, "Layouts that were chosen"), open.map(([tensor, { layout, candidates }]) => h("div", { class: "card" }, h("p", { class: "card-head" }, h("span", { class: "name" }, ending(tensor, 60)), h("code", null, layout)), h("ul", { class: "plain candidates" }, candidates.map((line) => h("li", { class: line.trim().endsWith(layout) ? "picked" : null }, line.trim()))))));
}

const PRELUDE_END = "#endif // SMR_PRELUDE";

// The code that is the kernel's own, with what every kernel begins with folded away.
function openCl(plan, launch) {
  const text = plan.data.programs[launch.program];
  const end = text.indexOf(PRELUDE_END);
  const cut = end < 0 ? 0 : end + PRELUDE_END.length;
  const sharing = plan.data.launches.filter((other) => other.program === launch.program && other !== launch);
  const copy = h("button", { class: "button small", type: "button" }, "Copy all");
  copy.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text); copy.textContent = "Copied"; } catch { copy.textContent = "Not allowed here"; }
    say(copy.textContent);
  });
  return h("section", null, h("h2", null, "OpenCL C"),
    h("p", { class: "chips" }, copy, sharing.length ? h("span", { class: "note" }, "The same program as ", linked(sharing.slice(0, 8).map((other) => launchLink(other.number)))) : null),
    cut ? h("details", null, h("summary", null, `What every program begins with, ${count(text.slice(0, cut).split("\n").length, "line")}`), code(text.slice(0, cut), "Common beginning of the programs")) : null,
    code(text.slice(cut).trim(), `OpenCL C of ${launch.name}`));
}

const TOKENS = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(^[ \t]*#[^\n]*)|\b(__kernel|__global|__local|__constant|__private|__read_only|__write_only|__attribute__|kernel|void|float(?:2|4|8|16)?|half(?:2|4|8|16)?|double(?:2|4|8|16)?|int(?:2|4|8|16)?|uint(?:2|4|8|16)?|long|ulong|short|ushort|char|uchar|bool|size_t|const|restrict|static|inline|if|else|for|while|do|return|break|continue|struct|typedef|barrier)\b|\b(\d[\w.]*)/gm;

function code(text, words) {
  const block = h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": words });
  let last = 0;
  for (const match of text.matchAll(TOKENS)) {
    const kind = match[1] ? "remark" : match[2] ? "directive" : match[3] ? "keyword" : "literal";
    block.append(text.slice(last, match.index), h("span", { class: kind }, match[0]));
    last = match.index + match[0].length;
  }
  block.append(text.slice(last));
  return block;
}

function showTensor(main, [name]) {
  const plan = report.plan;
  if (!plan.data.tensors[name] && !plan.data.types[name]) { showMissing(main, `tensor ${ending(name || "", 80)}`); return; }
  replace(main, h("div", { class: "page" }, h("p", { class: "kicker" }, "Tensor"), h("h1", { class: "name-title" }, name), tensorFacts(plan, name)));
}

// The rules that took part.

const ruleState = { all: false };

function showRules(main) {
  const plan = report.plan;
  const all = Object.entries(plan.data.rules).map(([name, rule]) => ({ name, ...rule }));
  const used = all.filter((rule) => rule.fired || rule.nodes.length);
  const rows = ruleState.all ? all : used;
  const box = h("input", { type: "checkbox", checked: ruleState.all, onchange: (event) => { ruleState.all = event.target.checked; showRules(main); main.querySelector("input[type=checkbox]").focus(); } });
  const verdicts = new Map();
  used.forEach((rule) => verdicts.set(verdictWord(rule), (verdicts.get(verdictWord(rule)) || 0) + 1));
  replace(main, h("div", { class: "page wide" },
    h("h1", null, "Rules"),
    h("p", { class: "lead" }, `${count(used.length, "rule")} of ${figure(all.length)} fired`, verdicts.size ? `: ${[...verdicts].map(([word, many]) => `${many} ${word}`).join(", ")}.` : "."),
    h("p", null, h("label", { class: "check" }, box, " Also those that did not fire")),
    sortable({
      caption: "Rules that took part",
      rows,
      sortedBy: 4,
      downwards: true,
      words: (rule) => `${rule.name} ${rule.equation || ""} ${rule.cites || ""} ${rule.verdict || ""}`,
      columns: [
        { name: "Rule", cell: (rule) => ruleLink(rule.name), sort: (rule) => rule.name },
        { name: "Equation", cell: (rule) => h("span", { class: "equation" }, rule.equation || ""), isMinor: true },
        { name: "Verdict", cell: (rule) => badge(rule), sort: (rule) => verdictWord(rule) },
        { name: "Fired", cell: (rule) => figure(rule.fired), sort: (rule) => rule.fired ?? null, isNumber: true },
        { name: "Nodes", cell: (rule) => figure(rule.nodes.length), sort: (rule) => rule.nodes.length, isNumber: true },
        { name: "Nearly", cell: (rule) => figure((plan.missesOfRule.get(rule.name) || []).length), sort: (rule) => (plan.missesOfRule.get(rule.name) || []).length, isNumber: true, isMinor: true },
        { name: "Stands in", cell: (rule) => h("span", { class: "note" }, place(rule)), sort: (rule) => place(rule), isMinor: true },
      ],
    })));
}

// What stands behind the word of a verdict.
function verdictDetails(rule) {
  if (rule.verdict) return rule.verdict.slice(verdictWord(rule).length).trim().replace(/^\((.*)\)$/s, "$1");
  return rule.file ? "no verification is known on this computer" : "";
}

function showRule(main, [name]) {
  const plan = report.plan;
  const rule = plan.data.rules[name];
  if (!rule) { showMissing(main, `rule ${ending(name || "", 80)}`); return; }
  const misses = plan.missesOfRule.get(name) || [];
  replace(main, h("div", { class: "page" },
    h("p", { class: "kicker" }, "Rule"),
    h("h1", { class: "name-title" }, name),
    rule.equation ? h("p", { class: "lead equation" }, rule.equation) : null,
    h("p", { class: "verdict" }, badge(rule), " ", verdictDetails(rule)),
    facts([
      ["after", rule.cites],
      ["stands in", rule.file ? place(rule) : "the engine itself: the index maps of views that follow each other become one"],
      ["tried", rule.tried === undefined ? null : figure(rule.tried)],
      ["fired", rule.fired === undefined ? null : figure(rule.fired)],
      ["took", rule.milliseconds === undefined ? null : milliseconds(rule.milliseconds)],
    ]),
    h("section", null, h("h2", null, `On the way of ${count(rule.nodes.length, "node")}`), rule.nodes.length ? shortList(rule.nodes, (node) => [h("span", { class: "type" }, plan.nodeByName.get(node)?.operator || ""), " ", nodeLink(node, 60)], 20) : h("p", null, "Nothing that was chosen comes from it.")),
    misses.length ? h("section", null, h("h2", null, `Nearly fired at ${count(misses.length, "node")}`), shortList(misses, ([node, miss]) => [nodeLink(node.node, 50), ": ", h("code", null, miss.reason), " does not hold"], 20)) : null));
}

// What the rules left, the same reasons together.

function showLeft(main) {
  const plan = report.plan;
  const moving = plan.data.left.filter((one) => one.moves_only);
  const groups = new Map();
  plan.data.left.forEach((one) => one.near_misses.slice(0, 1).forEach((miss) => push(groups, JSON.stringify([one.operator, miss.rule, miss.reason]), [one, miss])));
  const sorted = [...groups.values()].sort((a, b) => b.length - a.length);
  replace(main, h("div", { class: "page" },
    h("h1", null, "What was left"),
    h("p", { class: "lead" }, moving.length ? `Kernels that only move data compute ${count(moving.length, "node")}.` : "No kernel only moves data."),
    moving.length ? h("section", null, h("h2", null, "Only moved"), shortList(moving, (one) => [h("span", { class: "type" }, one.operator), " ", nodeLink(one.node, 60), ": ", one.near_misses.length ? ["nearest is ", ruleLink(one.near_misses[0].rule)] : "no rule matches there"], 20)) : null,
    h("section", null, h("h2", null, "Where a rule nearly fired"),
      h("p", { class: "note" }, "A kernel computes these nodes; the rule matched there, but its guard did not hold. Nodes with the same reason stand together. That a rule did not fire is seldom a fault: most guards ask for something that the model does not have."),
      sorted.length ? sorted.map((group) => leftCard(plan, group)) : h("p", null, "Nowhere."))));
}

function leftCard(plan, group) {
  const [one, miss] = group[0];
  const rule = plan.data.rules[miss.rule];
  const values = Object.entries(miss.values || {}).slice(0, 4);
  return h("article", { class: "card left" },
    h("h3", null, h("span", { class: "tally" }, figure(group.length)), ` ${one.operator}`),
    h("p", { class: "card-head" }, "nearest: ", ruleLink(miss.rule), badge(rule)),
    miss.equation ? h("p", { class: "equation" }, miss.equation) : null,
    h("p", null, "Guard ", h("code", null, miss.reason), " does not hold", values.length ? [", for instance ", linked(values.map(([name, value]) => h("code", null, `${name} = ${value}`)))] : null, ". ", h("span", { class: "note" }, place(miss.guard || miss))),
    h("details", null, h("summary", null, count(group.length, "node")), shortList(group, ([node]) => nodeLink(node.node, 60), 12)));
}

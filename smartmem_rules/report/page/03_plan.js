// A plan of the report with what the views look up in it.

class Plan {
  constructor(data, drawings, number) {
    this.data = data;
    this.drawings = drawings;
    this.number = number; // 1 for the plan itself, 2 for the one that it is compared with
    this.figures = data.figures;
    this.nodeByName = new Map(data.nodes.map((node) => [node.node, node]));
    this.numberOfNode = new Map(data.nodes.map((node, place) => [node.node, place]));
    this.writerOf = new Map();
    this.readersOf = new Map();
    data.launches.forEach((launch) => {
      launch.writes.forEach((tensor) => push(this.writerOf, tensor, launch.number));
      launch.reads.forEach((tensor) => push(this.readersOf, tensor, launch.number));
    });
    this.isMeasured = data.launches.some((launch) => launch.measured);
    this.isModelled = data.launches.some((launch) => launch.modelled_us !== null);
    this.missesOfRule = new Map();
    data.nodes.forEach((node) => node.near_misses.forEach((miss) => push(this.missesOfRule, miss.rule, [node, miss])));
    this.forms = [...new Set(data.launches.map((launch) => launch.form))].sort();
  }

  operators(launch) {
    return tally(launch.origin.map((name) => this.nodeByName.get(name)?.operator || name));
  }

  // Milliseconds of a launch: measured, else modelled, else null.
  time(launch) {
    if (launch.measured) return launch.measured.ms;
    return launch.modelled_us === null ? null : launch.modelled_us / 1000;
  }

  timeWord() {
    return this.isMeasured ? "measured" : "modelled";
  }

  modelled() {
    const all = this.data.launches.map((launch) => launch.modelled_us);
    return all.includes(null) ? null : all.reduce((sum, one) => sum + one, 0) / 1000;
  }

  formColour(form) {
    return form === "moves only" ? "var(--moves)" : `var(--form-${this.forms.filter((one) => one !== "moves only").indexOf(form) % 8})`;
  }

}

// What tells a plan from the other one.
function planWords(plan) {
  const other = report.plans.find((one) => one !== plan);
  if (!other) return `level ${plan.figures.level}`;
  const keys = { model: "", level: "level ", dtype: "", profile: "for ", memory: "memory " };
  const found = Object.entries(keys).filter(([key]) => plan.figures[key] !== other.figures[key]).map(([key, word]) => word + plan.figures[key]);
  return found.length ? found.join(", ") : `level ${plan.figures.level}, other rules`;
}

function push(map, key, value) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(value);
}

function place(rule) {
  return rule && rule.file ? `${rule.file.split(/[\\/]/).slice(-2).join("/")}:${rule.line}` : "";
}

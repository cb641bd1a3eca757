// Figures and names as people read them.

const NONE = "–";

function count(number, one, many) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many || one + "s"}`;
}

function figure(number) {
  return number === null || number === undefined ? NONE : number.toLocaleString("en");
}

function scaled(number, step, units, unit) {
  let place = 0;
  while (number >= step && place < units.length - 1) { number /= step; place += 1; }
  return `${number >= 100 || (place === 0 && unit) ? Math.round(number) : number.toPrecision(3)} ${units[place]}`;
}

function bytes(number) {
  return number === null || number === undefined ? NONE : scaled(number, 1000, ["B", "kB", "MB", "GB", "TB"], true);
}

function operations(number) {
  return number === null || number === undefined ? NONE : scaled(number, 1000, ["", "k", "M", "G", "T"], true).trim();
}

function milliseconds(ms) {
  if (ms === null || ms === undefined) return NONE;
  if (ms < 0.0995) return `${(ms * 1000).toPrecision(3)} µs`;
  return ms < 999.5 ? `${ms.toPrecision(3)} ms` : `${(ms / 1000).toPrecision(3)} s`;
}

function percent(share) {
  return share === null || share === undefined ? NONE : `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

function times(ratio) {
  return `${ratio < 999.5 ? ratio.toPrecision(3) : Math.round(ratio)}×`;
}

// The end of a name says more than its beginning.
function ending(name, length) {
  return name.length <= length ? name : `…${name.slice(name.length - length + 1)}`;
}

function beginning(name, length) {
  return name.length <= length ? name : `${name.slice(0, length - 1)}…`;
}

// "Conv, Clip ×2" of ["Conv", "Clip", "Clip"].
function tally(words) {
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) || 0) + 1);
  return [...counts].map(([word, many]) => (many === 1 ? word : `${word} ×${many}`)).join(", ");
}

const pencil = document.createElement("canvas").getContext("2d");

// As much of a text as a width in pixels takes, cut by `middle` or `ending`.
function fitting(text, font, width, cut) {
  pencil.font = font;
  if (text.length < 80 && pencil.measureText(text).width <= width) return text;
  let [least, most] = [1, Math.min(text.length, 80)];
  while (least < most) {
    const half = Math.ceil((least + most) / 2);
    if (pencil.measureText(cut(text, half)).width <= width) least = half; else most = half - 1;
  }
  return cut(text, least);
}

const KINDS = {
  computed: { word: "computed by kernels", short: "computed" },
  view: { word: "read in place, no kernel", short: "in place" },
  constant: { word: "computed at import", short: "at import" },
  unfolded: { word: "unfolded into its body", short: "unfolded" },
  unneeded: { word: "not needed by any output", short: "unneeded" },
};

// Rules that stand in no file are the engine's own.
function verdictWord(rule) {
  if (!rule?.verdict) return rule && !rule.file ? "built in" : "not verified";
  return rule.verdict.split(/[ (:]/, 1)[0];
}

// Tables of the page.
function cellText(value, column) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return Number.isInteger(value) ? value.toLocaleString("en") : significant(value, 4);
  return String(value);
}

// A plain table of objects. columns: [{key, title, help, text?, cell?, kind?}]; kind: "number", "code", "name".
function tableOf(rows, columns) {
  const head = element("tr", {}, columns.map(column => element("th", {class: column.kind === "number" ? "number" : null, title: column.help, scope: "col"}, column.title)));
  const body = rows.map(row => element("tr", {}, columns.map(column =>
    element("td", {class: [column.kind, column.look].filter(Boolean).join(" ") || null}, column.cell ? column.cell(row) : cellText(row[column.key], column)))));
  return element("div", {class: "scroll"}, element("table", {}, element("thead", {}, head), element("tbody", {}, body)));
}

const withUnit = (text, unit) => text === "–" ? [text] : [text, element("span", {class: "unit"}, unit)];

// Reached (bar), inference alone (pale bar) and limit (tick) on one scale for all runs.
function bullet(row, most) {
  const share = value => (100 * Math.max(0, Math.min(1, value / most))).toFixed(2) + "%";
  const colour = runColours[row.index % runColours.length];
  const box = element("div", {class: "bullet", role: "img", "aria-label": `${significant(row.end_to_end_fps)} of ${significant(row.limit_fps)} FPS`,
    title: `end to end ${significant(row.end_to_end_fps)} FPS · inference alone ${significant(row.inference_fps)} FPS · limit ${significant(row.limit_fps)} FPS`});
  if (isNumber(row.inference_fps)) box.append(element("i", {class: "alone", style: `width:${share(row.inference_fps)};background:${colour}`}));
  if (isNumber(row.end_to_end_fps)) box.append(element("i", {class: "reached", style: `width:${share(row.end_to_end_fps)};background:${colour}`}));
  if (isNumber(row.limit_fps)) box.append(element("i", {class: "limit", style: `left:${share(row.limit_fps)}`}));
  return box;
}

const limiterName = row => row.limited_by === "cores" ? "all cores" : row.limited_by;

function comparisonTable() {
  const rows = rowsOf(report.comparison).map((row, index) => ({...row, index}));
  const most = 1.03 * Math.max(...rows.flatMap(row => [row.inference_fps, row.end_to_end_fps, row.limit_fps].filter(isNumber)), 1e-9);
  const number = (key, title, help, unit = "", look = "") => ({key, title, help, kind: "number", look, cell: row => withUnit(significant(row[key]), unit)});
  const columns = [
    {key: "engine", title: "run", kind: "name", cell: row => [element("span", {class: "dot", style: `background:${runColours[row.index % runColours.length]}`}), row.engine]},
    number("end_to_end_fps", "end to end", "finished frames over the run's duration", "FPS", "big"),
    {key: "bar", title: "reached, inference alone, limit", help: "solid: end to end; pale: the inference stage alone; tick: the limit", cell: row => bullet(row, most)},
    {key: "limit_share", title: "of the limit", help: "end to end / limit", kind: "number", cell: row => percent(row.limit_share)},
    {key: "limited_by", title: "limited by", help: "what allows the least: the slowest stage alone, or all cores together", cell: row => row.limited_by ? [limiterName(row), isNumber(row.limit_fps) ? element("span", {class: "aside"}, " " + significant(row.limit_fps), element("span", {class: "unit"}, "FPS")) : null] : "–"},
    number("inference_fps", "inference", "the inference stage by itself", "FPS"),
    {key: "cores_busy", title: "cores busy", help: "CPU time of the run over its duration and the allowed cores", kind: "number", cell: row => percent(row.cores_busy)},
    number("p50_ms", "p50", "latency of a whole frame, queues included", "ms"),
    number("p90_ms", "p90", "latency of a whole frame, queues included", "ms"),
    number("p99_ms", "p99", "latency of a whole frame, queues included", "ms"),
    number("max_ms", "max", "latency of a whole frame, queues included", "ms"),
    {key: "frames", title: "frames", help: "frames that left the last stage", kind: "number", cell: row => [cellText(row.frames), row.dropped > 0 ? element("span", {class: "unit"}, `${row.dropped} dropped`) : null]},
  ];
  if (rows.length > 1) columns.push({key: "speedup", title: "vs " + shorten(rows[0].engine, 14), help: "end to end, over the first run", kind: "number", look: "big", cell: row => times(row.speedup)});
  return tableOf(rows, columns);
}

function stageTable(run) {
  const ms = (key, title) => ({key, title, kind: "number", cell: row => significant(row[key], 4)});
  return tableOf(run.stages, [
    {key: "stage", title: "stage", kind: "name", cell: row => row.stage === "total" ? "whole frame" : [element("span", {class: "dot", style: `background:${colourOf(row.stage)}`}), row.stage]},
    {key: "count", title: "times", kind: "number"}, ms("mean_ms", "mean ms"), ms("p50_ms", "p50 ms"), ms("p90_ms", "p90 ms"), ms("p99_ms", "p99 ms"), ms("max_ms", "max ms"),
    {key: "share", title: "share", kind: "number", cell: row => percent(row.share)}]);
}

// typeOf: the model's type of a layer by name; a kernel has the colour of its first layer.
function fusionTable(rows, typeOf) {
  const colour = row => typeColour(typeOf.get((row.layers || "").split("+")[0]) || row.type);
  return tableOf(rows, [
    {key: "type", title: "type", cell: row => element("span", {class: "type"}, element("i", {style: `background:${colour(row)}`}), row.type || "–")},
    {key: "kernel", title: "kernel as executed", kind: "code", cell: row => [row.kernel || "–", row.implementation ? element("div", {class: "dim"}, row.implementation) : null]},
    {key: "layers", title: "layers of the model inside", kind: "code", cell: row => !row.layers ? "–" : row.layers === row.kernel ? element("span", {class: "dim"}, "the same") : row.layers.split("+").join(" + ")},
    {key: "layer_count", title: "layers", kind: "number"},
    {key: "mean_us", title: "mean µs", kind: "number", cell: row => significant(row.mean_us)},
    {key: "p99_us", title: "p99 µs", kind: "number", cell: row => significant(row.p99_us)},
    {key: "share", title: "share", kind: "number", cell: row => percent(row.share)}]);
}

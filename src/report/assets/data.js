// What the page was given, unpacked (packing.h, timeline_json.h).
const report = JSON.parse(document.getElementById("strobe-data").textContent);

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Reads LEB128 varints one after the other. Values stay exact up to 2^53.
class Varints {
  constructor(base64) {
    this.bytes = bytesOf(base64);
    this.at = 0;
  }
  next() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127, scale = 128;
    do {
      byte = bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  }
  nextSigned() {
    const value = this.next();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
}

function floatsOf(base64) {
  const bytes = bytesOf(base64);
  const view = new DataView(bytes.buffer);
  const values = new Float32Array(bytes.length / 4);
  for (let i = 0; i < values.length; ++i) values[i] = view.getFloat32(4 * i, true);
  return values;
}

// A table of the report: rows as objects keyed by column.
function rowsOf(table) {
  return table.rows.map(cells => Object.fromEntries(table.columns.map((column, i) => [column.name, cells[i]])));
}

// Columns of numbers by frame: {frame: [...], total_ms: Float32Array, ...}.
function framesOf(packed) {
  const frames = {n: packed.n, columns: packed.columns, frame: new Float64Array(packed.n)};
  const ids = new Varints(packed.frame || "");
  let frame = 0;
  for (let i = 0; i < packed.n; ++i) frames.frame[i] = frame += ids.nextSigned();
  for (const name of packed.columns) frames[name] = floatsOf(packed[name]);
  return frames;
}

// One line of boxes. start, end: nanoseconds; busy[i]: the summed time of ranges before i. several: by index, how many
// ranges a box stands for where there are more than one.
function rowOf(packed) {
  const n = packed.n;
  const row = {lane: packed.lane, depth: packed.depth, async: packed.async, n, open: new Set(packed.open),
               start: new Float64Array(n), end: new Float64Array(n), busy: new Float64Array(n + 1),
               name: new Uint32Array(n), frame: new Float64Array(n)};
  const times = new Varints(packed.times), names = new Varints(packed.names), frames = new Varints(packed.frames);
  row.several = new Map();
  const several = new Varints(packed.several), ofSeveral = new Map();
  for (let i = 0; several.at < several.bytes.length;) {
    i += several.next();
    row.several.set(i, several.next());
    ofSeveral.set(i, several.next());
  }
  let time = 0, busy = 0, frame = 0;
  for (let i = 0; i < n; ++i) {
    row.start[i] = time += times.next();
    const duration = times.next();
    row.end[i] = time += duration;
    row.busy[i + 1] = busy += ofSeveral.get(i) ?? duration;
    row.name[i] = names.next();
    row.frame[i] = frame += frames.nextSigned();
  }
  return row;
}

function timelineOf(packed) {
  const timeline = {names: packed.names, lanes: packed.lanes, run: packed.run_ns, duration: packed.duration_ns,
                    ranges: packed.ranges, notes: packed.notes, rows: packed.rows.map(rowOf)};
  const flows = new Varints(packed.flows.data);
  timeline.flows = [];
  for (let i = 0, time = 0; i < packed.flows.n; ++i) {
    const flow = {fromRow: flows.next(), fromIndex: flows.next(), toRow: flows.next(), toIndex: flows.next()};
    flow.from = time += flows.nextSigned();
    flow.to = flow.from + flows.nextSigned();
    timeline.flows.push(flow);
  }
  const marks = new Varints(packed.marks.data);
  timeline.marks = [];
  for (let i = 0, time = 0; i < packed.marks.n; ++i) {
    const lane = marks.next();
    time += marks.nextSigned();
    timeline.marks.push({lane, time, name: marks.next(), frame: marks.nextSigned()});
  }
  // Arguments by "row:index", unpacked when first asked for.
  let args = null;
  timeline.argumentsOf = (row, index) => {
    if (!args) {
      args = new Map();
      const at = new Varints(packed.args.at), keys = new Varints(packed.args.keys);
      for (const value of packed.args.values) {
        const place = at.next() + ":" + at.next();
        if (!args.has(place)) args.set(place, []);
        args.get(place).push([timeline.names[keys.next()], value]);
      }
    }
    return args.get(row + ":" + index) || [];
  };
  return timeline;
}

// The first index whose value is greater than x.
function upperBound(values, x, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > x) high = middle; else low = middle + 1;
  }
  return low;
}

const runs = report.runs.map((run, index) => ({
  index, label: run.label, facts: run.facts, dropped: run.dropped_records, faults: run.faults,
  throughput: rowsOf(run.throughput)[0] || {}, stages: rowsOf(run.stages), limits: rowsOf(run.limits),
  layers: rowsOf(run.layers), fusion: rowsOf(run.fusion),
  limitNotes: run.limits.notes, layerNotes: [...run.layers.notes, ...run.fusion.notes], fusionCoverage: run.fusion.coverage,
  frames: framesOf(run.frames), counters: run.counters, isPipeline: run.is_pipeline, answers: run.answers, timeline: timelineOf(run.timeline),
}));
report.comparison.rows.forEach((cells, index) => { runs[index].result = rowsOf(report.comparison)[index]; });
// The stages in the order in which a frame passes them, over all runs.
const stageNames = [...new Set(runs.flatMap(run => (run.facts["pipeline.stages"] || "").split(",").filter(Boolean)
  .concat(run.stages.map(row => row.stage).filter(stage => stage && stage !== "total"))))];

// What the page was given of tenants, unpacked (tenants_page.h, lidar_scene.h).
const tableRows = table => table ? rowsOf(table) : [];

function tenantFramesOf(packed) {
  const frames = {n: packed.n, outcome: packed.outcome, frame: new Float64Array(packed.n)};
  const ids = new Varints(packed.frame);
  let frame = 0;
  for (let i = 0; i < packed.n; ++i) frames.frame[i] = frame += ids.nextSigned();
  for (const [key, value] of Object.entries(packed)) if (!(key in frames)) frames[key] = floatsOf(value);
  return frames;
}

// Runs without data are cells that left no trace.
const tenantRuns = !report.tenants ? [] : report.tenants.runs.map((run, index) => ({
  index, label: run.label, status: run.status, reason: run.reason, notes: run.notes, factors: run.factors || {},
  data: run.data && {policy: run.data.policy, isolation: run.data.isolation, sentences: run.data.sentences,
    frames: Object.fromEntries(Object.entries(run.data.frames).map(([tenant, packed]) => [tenant, tenantFramesOf(packed)])),
    summary: tableRows(run.data.summary), summaryNotes: run.data.summary.notes,
    blame: Object.fromEntries(Object.entries(run.data.blame).map(([of, table]) => [of, {columns: table.columns.map(column => column.name), rows: rowsOf(table), notes: table.notes}])),
    resources: tableRows(run.data.resources), layers: tableRows(run.data.layers), layerNotes: run.data.layers.notes},
}));
const shownRuns = tenantRuns.filter(run => run.data);
const grid = report.tenants && report.tenants.grid || null;
const gridTable = name => tableRows(grid && grid[name]);
// In the order of the runs' own tables.
const tenantNames = [...new Set(shownRuns.flatMap(run => run.data.summary.map(row => row.tenant)))];
const tenantColours = ["#4269d0", "#ff725c", "#3ca951", "#efb118", "#a463f2", "#1390a8", "#9c6b4e", "#ff8ab7"];
const tenantColour = tenant => tenantColours[Math.max(0, tenantNames.indexOf(tenant)) % tenantColours.length];
// A cell's folder without its number, and with the words of the grid apart.
const cellTitle = label => label.replace(/^\d+_/, "").replaceAll("_", "  ");

// Values of a frame's own parts: comm_ms to work_ms.
const frameParts = [["comm_ms", "communication", "#9498a0"], ["queue_ms", "queue", "#efb118"], ["decode_ms", "decode", "#6cc5b0"],
  ["device_wait_ms", "wait for the device", "#ff725c"], ["cpu_wait_ms", "wait for a core", "#ff8ab7"], ["work_ms", "inference", "#4269d0"]];

// {centimetres: Int16Array of x, y, z, intensity: Uint8Array, ...} when first asked for.
const pointStreams = !report.tenants ? [] : report.tenants.streams.map(stream => ({name: stream.name, notes: stream.notes, hasTruth: stream.has_truth,
  frames: stream.frames.map(packed => {
    let points = null;
    return {token: packed.token, n: packed.n, before: packed.before, truth: packed.truth.map(boxOf), points: () => points ||= pointsOf(packed)};
  })}));
const scenesShown = !report.tenants ? [] : report.tenants.scenes.map(scene => ({...scene, predicted: scene.predicted.map(boxes => boxes.map(boxOf))}));

function pointsOf(packed) {
  const bytes = bytesOf(packed.places), view = new DataView(bytes.buffer), places = new Float32Array(3 * packed.n);
  for (let i = 0; i < places.length; ++i) places[i] = view.getInt16(2 * i, true) / 100;
  return {places, intensity: bytesOf(packed.intensity)};
}
function boxOf([x, y, z, length, width, height, yaw, label, score]) {
  const c = Math.cos(yaw), s = Math.sin(yaw), corners = [];
  for (const [a, b, d] of [[1, 1, -1], [1, -1, -1], [-1, -1, -1], [-1, 1, -1], [1, 1, 1], [1, -1, 1], [-1, -1, 1], [-1, 1, 1]]) {
    const u = a * length / 2, v = b * width / 2;
    corners.push([x + u * c - v * s, y + u * s + v * c, z + d * height / 2]);
  }
  return {x, y, z, length, width, height, yaw, label, score, corners};
}

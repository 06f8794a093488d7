// The section of the LiDAR: what a tenant saw, what it found, what there was.
const kPredicted = "#d6336c", kTruth = "#2f9e44";

function sceneSection() {
  if (!scenesShown.length) return;
  let scene = scenesShown.find(one => one.predicted.some(boxes => boxes.length)) || scenesShown[0];
  let frame = 0, least = 0.3, colouring = "height", playing = 0;
  const canvas = element("canvas", {class: "scene", tabindex: "0", role: "img", "aria-label": "LiDAR scene", style: "display:block;width:100%;height:520px;border:1px solid var(--line);border-radius:10px;cursor:grab"});
  const said = element("p", {class: "note"}), warnings = element("div"), position = element("span");
  const slider = element("input", {type: "range", min: "0", value: "0", step: "1", "aria-label": "Frame", oninput: event => { frame = Number(event.target.value); show(); }});
  const score = element("input", {type: "range", min: "0", max: "1", step: "0.01", value: String(least), "aria-label": "Least score", oninput: event => { least = Number(event.target.value); show(); }});
  const scoreText = element("span", {style: "min-width:3em;display:inline-block"});
  const play = element("button", {type: "button", onclick: () => {
    if (playing) { clearInterval(playing); playing = 0; } else playing = setInterval(() => { frame = (frame + 1) % streamOf().frames.length; show(); }, 400);
    play.textContent = playing ? "Stop" : "Play";
  }}, "Play");
  const streamOf = () => pointStreams[scene.stream];
  const title = one => `${one.tenant}${shownRuns.length > 1 ? ", " + cellTitle(one.run) : ""}`;
  const select = element("select", {"aria-label": "Which scene"}, scenesShown.map((one, i) => element("option", {value: i}, shorten(title(one), 70))));
  select.value = String(scenesShown.indexOf(scene));
  select.addEventListener("change", () => { scene = scenesShown[Number(select.value)]; frame = 0; show(); });
  let view = null;
  const show = () => {
    const stream = streamOf(), at = stream.frames[Math.min(frame, stream.frames.length - 1)], predicted = (scene.predicted[frame] || []).filter(box => box.score >= least);
    slider.max = String(stream.frames.length - 1);
    slider.value = String(frame);
    slider.disabled = play.disabled = stream.frames.length < 2;
    position.textContent = `${frame + 1} of ${stream.frames.length}`;
    scoreText.textContent = least.toFixed(2);
    canvas.dataset.truth = String(at.truth.length);
    canvas.dataset.predicted = String(predicted.length);
    said.textContent = `${stream.name}, ${at.token}: ${at.n.toLocaleString("en")} of ${at.before.toLocaleString("en")} points${at.n < at.before ? ", chosen at random" : ""}; ${predicted.length} predicted boxes`
      + (stream.hasTruth ? `, ${at.truth.length} true ones.` : "; no true boxes are known.");
    const run = tenantRuns.find(one => one.label === scene.run);
    const texts = [...stream.notes, ...(run ? run.notes.filter(note => note.startsWith(scene.tenant + ":")).map(note => note.slice(scene.tenant.length + 2)) : [])];
    warnings.replaceChildren(...[...new Set(texts)].map(text => element("p", {class: "caveat", style: "margin-top:8px"}, text)));
    if (view) view.show(at.points(), [...at.truth.map(box => ({corners: box.corners, colour: kTruth, thick: 1.4, text: box.label.split(".").slice(-1)[0]})),
      ...predicted.map(box => ({corners: box.corners, colour: kPredicted, thick: 1.8, text: `${box.label} ${box.score.toFixed(2)}`}))], colouring);
  };
  const key = (colour, text) => element("span", {}, element("i", {style: `background:${colour}`}), text);
  const frames = pointStreams.reduce((sum, stream) => sum + stream.frames.length, 0), points = pointStreams.reduce((sum, stream) => sum + stream.frames.reduce((n, one) => n + one.n, 0), 0);
  part("scene", "LiDAR scene", "What a tenant's LiDAR saw, with the boxes that it found and the true ones where the data has them; a cross marks the front of a box. Drag to turn, shift and drag to move, wheel to zoom, double click to come back.",
    element("div", {class: "controls"}, scenesShown.length > 1 ? select : null, "Points by", segments([["height", "Height"], ["intensity", "Intensity"]], colouring, value => { colouring = value; show(); }, "Colour of points"),
      "Score from", score, scoreText, "Frame", slider, position, play, element("button", {type: "button", onclick: () => view.above()}, "From above")),
    element("div", {class: "keys", style: "margin-bottom:10px"}, key(kPredicted, "predicted"), key(kTruth, "true")), canvas, said, warnings,
    element("p", {class: "note"}, `The page holds ${frames} sweeps with ${points.toLocaleString("en")} points (${significant(points * 7 / 1e6)} MB), places to the centimetre: of each stream its first frames, of each sweep a random part.`));
  view = new SceneView(canvas);
  show();
}

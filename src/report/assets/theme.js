// Colours: a stage keeps its own in every part of the page, and so does a run. Runs have hues that no stage has.
const darkQuery = matchMedia("screen and (prefers-color-scheme: dark)");
const cssColour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

const categorical = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0"];
const usualStages = {read: "#6cc5b0", prep: "#8fb2ee", infer: "#4269d0", post: "#a463f2", draw: "#efb118", write: "#ff725c",
                     "back-pressure": "#b4b8bf", run: "#a9aeb6", afterwards: "#a9aeb6", alone: "#8f959e"};
const runColours = ["#6b7683", "#d6336c", "#37944a", "#a5692f", "#1390a8", "#7a5be0"];
const runColour = run => runColours[run.index % runColours.length];

// The same name has the same colour in every report.
function hashOf(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash >>> 0;
}
const nameColours = new Map(Object.entries(usualStages));
function colourOf(name) {
  if (!nameColours.has(name)) nameColours.set(name, categorical[hashOf(name) % categorical.length]);
  return nameColours.get(name);
}
// Waiting recedes behind work.
const strengthOf = name => name === "back-pressure" ? 0.45 : 1;
const layerColours = {Convolution: "#4269d0", Pool: "#6cc5b0", Activation: "#efb118", BatchNorm: "#a463f2", Concat: "#ff8ab7",
                      Upsample: "#3ca951", Add: "#ff725c", Linear: "#9c6b4e", Slice: "#97bbf5"};
const typeColour = type => layerColours[type] || colourOf("type " + type);

// Black or white, whichever reads better on a colour (relative luminance, WCAG 2).
const inkCache = new Map();
function inkOn(colour) {
  if (!inkCache.has(colour)) {
    const [r, g, b] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16) / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    inkCache.set(colour, 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.3 ? "#16181d" : "#ffffff");
  }
  return inkCache.get(colour);
}

// Numbers and small pieces of page.
const isNumber = value => typeof value === "number" && Number.isFinite(value);

// Three significant digits, never fewer than the whole part: 1234, 56.7, 0.0891.
function significant(value, digits = 3) {
  if (!isNumber(value)) return "–";
  if (value === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toLocaleString("en", {minimumFractionDigits: Math.max(0, Math.min(12, digits - whole)),
                                     maximumFractionDigits: Math.max(0, Math.min(12, digits - whole)), useGrouping: whole > 4});
}
const percent = share => isNumber(share) ? (100 * share).toFixed(share < 0.0995 ? 1 : 0) + "%" : "–";
const times = factor => isNumber(factor) ? (factor < 10 ? factor.toFixed(2) : significant(factor)) + "×" : "–";

function duration(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return significant(ns / 1e9, 4) + " s";
  if (size >= 1e6) return significant(ns / 1e6) + " ms";
  if (size >= 1e3) return significant(ns / 1e3) + " µs";
  return Math.round(ns) + " ns";
}

// "a", "a and b", "a, b and c".
const listOf = words => words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + " and " + words[words.length - 1];

// element("p", {class: "x", onclick: f}, child, ...): children are elements or text; text stays text.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") made.style.cssText = value;
    else made.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) made.append(child);
  return made;
}

// For plotly, which reads a few tags in its texts.
const plain = text => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const shorten = (text, most) => text.length <= most ? text : text.slice(0, most - 1) + "…";
// Keeps both ends: names of layers often differ in their last letters.
function shortenMiddle(text, most) {
  if (text.length <= most) return text;
  const head = Math.ceil((most - 1) / 2);
  return text.slice(0, head) + "…" + text.slice(text.length - (most - 1 - head));
}

// One button pressed of several: choices are [value, label].
function segments(choices, chosen, onChoice, label) {
  const group = element("div", {class: "segments", role: "group", "aria-label": label});
  for (const [value, text] of choices) {
    const button = element("button", {type: "button", "aria-pressed": String(value === chosen)}, text);
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      onChoice(value);
    });
    group.append(button);
  }
  return group;
}

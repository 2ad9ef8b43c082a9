// View 3 with an index: the uses of a word in groups, as a map and as lists. Knows: shared parts, the server.

import { senses } from "./api.js";
import { fill, h, roving, svg } from "./dom.js";
import { heading, placeOf, source, working } from "./parts.js";
import { set, state } from "./state.js";
import { text } from "./texts.js";
import { context } from "./words.js";

const SHOWN = 50; // uses of each group
const EDGE = 24; // pixels around the points

export function groups(app) {
  const canvas = svg("svg", { class: "map", role: "group" }), caption = h("figcaption", {}, text.map.hint), list = h("div", { class: "sentences uses grouped", role: "region", tabindex: 0, "aria-label": text.groups.heading });
  let uses = [];

  const load = () => working(list, () => senses(app.model.name, state.word || app.set, SHOWN), show);

  const show = (found) => {
    const number = found.senses.length;
    uses = found.senses.flatMap((sense, g) => sense.uses.map((use) => ({ ...use, g })));
    for (const use of uses) {
      use.point = svg("g", { class: "point grouped", role: "img", "--hue": hue(use.g), "aria-label": text.groups.use(use.g + 1, use.text) }, svg("circle", { r: 10, class: "dot" }), svg("text", { "text-anchor": "middle", y: 4 }, String(use.g + 1)));
      use.line = h("li", {}, h("p", { class: "sentence", dir: "auto" }, context(use, use.position, 40), " ", placeOf(use)));
      for (const part of [use.point, use.line]) for (const [name, on] of [["pointerenter", true], ["pointerleave", false]]) part.addEventListener(name, () => light(on && use));
      use.point.addEventListener("focus", () => light(use));
      use.point.addEventListener("blur", () => light(false));
    }
    canvas.setAttribute("aria-label", text.map.label(found.word, uses.length));
    fill(canvas, uses.map((use) => use.point));
    fill(caption, uses.length ? text.map.hint : "");
    fill(list, h("p", { class: "note" }, number ? text.groups.found(found.word, found.uses, number) : text.groups.none(found.word)), found.senses.map((sense, g) => section(sense, g)));
    place();
    if (uses.length) roving(canvas, ".point");
  };

  const section = (sense, g) => [
    h("h3", {}, h("span", { class: "group", "--hue": hue(g) }, String(g + 1)), " ", sense.typical_words.join(" · "), " ", h("small", {}, text.groups.size(sense.number_of_uses))),
    h("ol", {}, uses.filter((use) => use.g === g).map((use) => use.line)),
  ];

  /** Show the sentence of a use, and mark it in both places. */
  const light = (lit) => {
    for (const use of uses) for (const part of [use.point, use.line]) part.classList.toggle("lit", use === lit);
    if (lit) fill(caption, context(lit, lit.position, 40));
  };

  const place = () => {
    const { clientWidth: width, clientHeight: height } = canvas;
    canvas.setAttribute("viewBox", `0 0 ${width || 1} ${height || 1}`);
    const far = (axis) => Math.max(1e-6, ...uses.map((use) => Math.abs(use[axis])));
    const scale = Math.min((width / 2 - EDGE) / far("x"), (height / 2 - EDGE) / far("y"));
    for (const { point, x, y } of uses) point.style.setProperty("transform", `translate(${(width / 2 + scale * x).toFixed(1)}px, ${(height / 2 - scale * y).toFixed(1)}px)`);
  };

  const word = h("input", { id: "word", value: state.word || app.set, autocomplete: "off", dir: "auto" });
  const search = (event) => {
    event.preventDefault();
    if (!word.value.trim()) return;
    set({ word: word.value.trim() }, true);
    load();
  };
  const form = h("form", { class: "toolbar", onsubmit: search }, h("label", { for: "word" }, text.map.word), word, h("button", { class: "main" }, text.groups.search));
  new ResizeObserver(place).observe(canvas);
  load();
  return h(
    "div",
    { class: "view" },
    heading(text.map.heading, text.groups.lead),
    source(app.model, () => app.go("map")),
    h("div", { class: "columns wide" }, h("section", { class: "card" }, form, h("figure", {}, canvas, caption)), h("section", { class: "card" }, h("h2", {}, text.groups.heading), list)),
  );
}

function hue(g) {
  return ((48 + 137.5 * g) % 360).toFixed(0);
}

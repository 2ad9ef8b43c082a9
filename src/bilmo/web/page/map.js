// View 3: a map of all uses of a word, and the same uses as a list. Knows: shared parts, the server.

import { fill, h, number, roving, svg } from "./dom.js";
import { groups } from "./groups.js";
import { heading, legend, mixControl, select, sentenceLine, shade, source, working } from "./parts.js";
import { fromIndex, gamma, set, weights } from "./state.js";
import { text } from "./texts.js";
import { repeated, Uses } from "./uses.js";
import { aligned, extent, plane, softmax } from "./vectors.js";
import { context } from "./words.js";

const LABELLED = 24; // with more points, only the one in focus has its words beside it

export function map(app) {
  if (fromIndex(app.model)) return groups(app);
  const canvas = svg("svg", { class: "map", role: "group" }), caption = h("figcaption", {}, text.map.hint), list = h("div", { class: "sentences uses" }), chooser = h("div", { class: "toolbar" });
  const mix = mixControl(app.model.layers, app.learned, () => page && draw());
  let page = null;

  const load = () =>
    working(list, () => app.load(), (found) => {
      page = { ...found, at: app.chosen(found.sentences), before: null };
      begin();
    });

  /** All uses of the chosen word: points and lines. */
  const begin = () => {
    const { sentences } = page, words = repeated(sentences);
    if (!page.at || !words.some(([word]) => word === sentences[page.at[0]].tokens[page.at[1]].toLowerCase())) {
      if (!words.length) {
        fill(list, h("p", { class: "note" }, text.map.none));
        fill(canvas);
        return;
      }
      const s = sentences.findIndex(({ tokens }) => tokens.some((token) => token.toLowerCase() === words[0][0]));
      page.at = [s, sentences[s].tokens.findIndex((token) => token.toLowerCase() === words[0][0])];
    }
    const word = sentences[page.at[0]].tokens[page.at[1]].toLowerCase();
    fill(chooser, select(text.map.word, words.map(([name, count]) => [name, text.map.times(name, count)]), word, another));
    page.word = word;
    page.places = sentences.flatMap(({ tokens }, s) => tokens.flatMap((token, k) => (token.toLowerCase() === word ? [[s, k]] : [])));
    page.points = page.places.map((place, i) => point(place, i));
    canvas.setAttribute("aria-label", text.map.label(word, page.places.length));
    page.ruler = svg("g", { class: "ruler", "aria-hidden": "true" }, svg("path"), svg("text", { y: -6 }));
    fill(canvas, svg("g", { class: "labels", "aria-hidden": "true" }, page.points.map((one) => one.label)), page.points.map((one) => one.element), page.ruler);
    page.lines = page.places.map(([s, k]) => sentenceLine(sentences[s], text.words.sentence(s + 1), (chosen) => choose([s, chosen === k ? k : chosen])));
    fill(list, h("ol", {}, page.lines.map((line, i) => h("li", { onpointerenter: () => light(i), onpointerleave: () => light(-1) }, line.element))));
    page.before = null;
    page.spread = page.places.length > 1 ? Math.max(...page.sentences[0].layers[0].map((_, j) => extent(plane(page.places.map(([s, k]) => sentences[s].layers[k][j]))))) : 1;
    draw();
    roving(canvas, ".point");
  };

  const point = (place, i) => {
    const [s, k] = place, sentence = page.sentences[s];
    const spelled = (from, to) => sentence.tokens.slice(Math.max(0, from), to).filter((token) => /[\p{L}\p{N}]/u.test(token));
    const words = [spelled(k - 2, k), spelled(k + 1, k + 3)];
    const space = sentence.pieces.some((piece) => piece === " ") ? " " : "";
    const element = svg("g", { class: "point", role: "button", tabindex: -1 }, svg("circle", { r: 14, class: "hit" }), svg("circle", { r: 6.5, class: "dot" }));
    const label = svg("text", {}, [words[0].join(space), "·", words[1].join(space)].join(space).trim());
    element.setAttribute("aria-label", sentence.tokens.join(space));
    element.addEventListener("click", () => choose(place));
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(place);
    });
    for (const [name, on] of [["pointerenter", true], ["pointerleave", false], ["focus", true], ["blur", false]]) element.addEventListener(name, () => light(on ? i : -1));
    return { element, label };
  };

  /** Show the sentence of a point, and mark it in both places. */
  const light = (i) => {
    const shown = i < 0 ? page.places.findIndex(([s, k]) => s === page.at[0] && k === page.at[1]) : i;
    page.points.forEach((one, n) => [one.element, one.label].forEach((part) => part.classList.toggle("lit", n === i)));
    page.lines.forEach(({ element }, n) => element.parentElement.classList.toggle("lit", n === i));
    if (shown >= 0) fill(caption, context(page.sentences[page.places[shown][0]], page.places[shown][1], 40));
  };

  const choose = (at) => {
    page.at = at;
    set({ at: at.join(".") }, true);
    if (page.sentences[at[0]].tokens[at[1]].toLowerCase() === page.word) draw();
    else begin();
  };

  const another = (word) => {
    const s = page.sentences.findIndex(({ tokens }) => tokens.some((token) => token.toLowerCase() === word));
    choose([s, page.sentences[s].tokens.findIndex((token) => token.toLowerCase() === word)]);
  };

  /** Place and colour everything under the present mix. */
  const draw = () => {
    if (!canvas.clientWidth) return; // not on the page; drawn when it is
    const uses = new Uses(page.sentences, page.background, softmax(weights(app.model.layers)));
    const flat = aligned(uses.map(page.places), page.before), span = extent(flat);
    page.before = flat;
    const shades = uses.shades(page.at), { clientWidth: width, clientHeight: height } = canvas;
    const still = span < 1e-4 * page.spread, scale = (gamma() * 0.4 * Math.min(width * 0.8, height)) / Math.max(span, 0.05 * page.spread);
    canvas.setAttribute("viewBox", `0 0 ${width || 1} ${height || 1}`);
    const stretch = width > 1.3 * height ? 1.3 : 1;
    const spots = flat.map(([x, y]) => [width / 2 + stretch * scale * x, height / 2 + scale * y]);
    page.points.forEach(({ element, label }, i) => {
      const [s, k] = page.places[i], value = shades[s][k], here = s === page.at[0] && k === page.at[1];
      for (const part of [element, label]) {
        part.style.setProperty("transform", `translate(${spots[i][0].toFixed(1)}px, ${spots[i][1].toFixed(1)}px)`);
        part.classList.toggle("chosen", here);
      }
      element.style.setProperty("--strength", Math.min(1, Math.abs(value) * 1.4 + 0.1).toFixed(3));
      element.classList.toggle("far", value < 0);
      element.setAttribute("aria-pressed", here);
    });
    page.lines.forEach(({ element, buttons }, i) => {
      const [s, k] = page.places[i], { tokens } = page.sentences[s];
      shade(buttons, tokens, shades[s], (n) => tokens[n].toLowerCase() === page.word, s === page.at[0] ? page.at[1] : -1);
      element.parentElement.style.setProperty("--strength", Math.min(1, Math.abs(shades[s][k]) * 1.4 + 0.1).toFixed(3));
      element.parentElement.classList.toggle("far", shades[s][k] < 0);
    });
    labels(still ? [] : page.points, spots, width);
    if (still) page.points.forEach(({ label }) => label.classList.add("hidden"));
    const unit = niceLength(0.25 * width / scale), [path, name] = page.ruler.children, long = unit * scale;
    path.setAttribute("d", `M0 -4V0H${long.toFixed(1)}V-4`);
    name.textContent = still ? "" : `${text.map.scale} ${number(unit, unit < 1 ? 2 : 0)}`;
    page.ruler.style.setProperty("transform", `translate(16px, ${height - 14}px)`);
    page.ruler.style.setProperty("display", still ? "none" : "inline");
    if (still) fill(caption, text.map.still);
    else light(-1);
  };

  const figure = h("figure", {}, canvas, caption);
  const element = h(
    "div",
    { class: "view" },
    heading(text.map.heading, text.map.lead),
    source(app.model, () => app.go("map")),
    h("div", { class: "columns wide" }, h("section", { class: "card" }, chooser, figure), h("div", {}, mix.element, h("section", { class: "card" }, h("h2", {}, text.map.list), list, legend()))),
  );
  new ResizeObserver(() => page?.points && draw()).observe(canvas);
  load();
  return element;
}

/** Words beside the points, where there is room for them. */
function labels(points, spots, width) {
  const taken = spots.map(([x, y]) => [x - 8, y - 8, x + 8, y + 8]);
  const free = (box) => box[0] > 4 && box[2] < width - 4 && taken.every((other) => box[2] < other[0] || box[0] > other[2] || box[3] < other[1] || box[1] > other[3]);
  points.forEach(({ label }, i) => {
    const [x, y] = spots[i], long = [...label.textContent].reduce((sum, letter) => sum + (letter > "\u2e80" ? 12.5 : 6.4), 0);
    const places = [["start", 12, 4], ["end", -12, 4], ["middle", 0, -13], ["middle", 0, 21]];
    const boxOf = ([anchor, dx, dy]) => {
      const left = x + dx - { start: 0, middle: long / 2, end: long }[anchor];
      return [left, y + dy - 11, left + long, y + dy + 3];
    };
    const place = points.length <= LABELLED ? places.find((one) => free(boxOf(one))) : null, [anchor, dx, dy] = place ?? (x > width / 2 ? places[1] : places[0]);
    label.setAttribute("text-anchor", anchor);
    label.setAttribute("x", 1.2 * dx);
    label.setAttribute("y", dy);
    label.classList.toggle("hidden", !place);
    if (place) taken.push(boxOf(place));
  });
}

/** 1, 2 or 5 times a power of ten, at most `most`. */
function niceLength(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1e-6)));
  return power * (most / power >= 5 ? 5 : most / power >= 2 ? 2 : 1);
}

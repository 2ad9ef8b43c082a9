// View 5: the flow text, tokens, characters, layers, mix, with the numbers of the model. Knows: shared parts, the server.

import { characters, embed } from "./api.js";
import { fill, h, roving } from "./dom.js";
import { HOW } from "./examples.js";
import { field, heading, mixControl, working } from "./parts.js";
import { gamma, set, state, weights } from "./state.js";
import { text } from "./texts.js";
import { mixed, softmax } from "./vectors.js";

const SHOWN = 64; // numbers of a vector that are drawn

export function how(app) {
  const [example, first] = HOW[app.lang], { layers, directions } = app.model;
  const tokens = h("div", { class: "chips tokens", role: "group", "aria-label": text.how.tokens[0] }), letters = h("div", { class: "letters" }), grid = h("div", { class: "grid" }), reading = h("p", { class: "note reading", "aria-live": "polite" }), strips = h("div", { class: "strips" });
  const mix = mixControl(layers, app.learned, () => page && drawStrips());
  let page = null, given = /^(\d+)\|(.*)$/s.exec(state.how);
  const { element: box } = field(text.how.text[0], given?.[2] || example, (value) => {
    given = null;
    load(value.trim(), 0);
  });

  const load = (line, at) =>
    working(tokens, () => embed(app.model.name, [line || " "]), ([found]) => {
      const sentence = found[0];
      if (!sentence) return;
      page = { line, sentence, at: Math.min(at, sentence.tokens.length - 1), layer: 1, way: directions[0] };
      fill(tokens, sentence.tokens.map((token, k) => h("button", { type: "button", class: "word", dir: "auto", onclick: () => choose(k) }, token)));
      roving(tokens);
      show();
    });

  const choose = (k) => {
    page.at = k;
    set({ how: page.line === example && k === first ? "" : `${k}|${page.line}` });
    show();
  };

  const show = () => {
    [...tokens.children].forEach((one, k) => one.setAttribute("aria-pressed", k === page.at));
    if (app.model.characters) working(letters, () => characters(app.model.name, page.sentence.tokens[page.at]), drawLetters);
    else fill(letters, h("p", { class: "note" }, text.how.noCharacters));
    drawGrid();
    drawStrips();
  };

  /** The characters of the word between its marks, and a window that moves over them. */
  const drawLetters = (found) => {
    const marks = { "<bow>": "‹", "<eow>": "›" }, all = found.characters.map((one) => marks[one] ?? one), boxes = all.map((one) => h("span", { class: "letter" }, one));
    const wide = Math.min(3, all.length), slider = h("input", { type: "range", min: 0, max: all.length - wide, step: 1, value: 0, "aria-label": text.how.width(wide) });
    const move = () => {
      const from = Number(slider.value);
      boxes.forEach((one, i) => one.classList.toggle("inside", i >= from && i < from + wide));
      slider.setAttribute("aria-valuetext", all.slice(from, from + wide).join(" "));
    };
    slider.addEventListener("input", move);
    fill(letters, h("div", { class: "spelling", dir: "auto" }, boxes), h("label", { class: "window" }, h("span", {}, text.how.width(wide)), slider));
    move();
  };

  /** One row per layer, one column per token, an arrow for each direction. */
  const drawGrid = () => {
    const words = page.sentence.tokens, rows = [];
    const ways = { forward: ["→", text.how.forward], backward: ["←", text.how.backward] };
    for (let j = layers - 1; j >= 0; j--) {
      const cells = words.map((word, k) => {
        const arrows = j === 0 ? [["·", "word"]] : directions.map((way) => [ways[way][0], way]);
        return h("td", {}, arrows.map(([sign, way]) => {
          const label = j === 0 ? `${word}, ${text.how.layer(0)}` : text.how.cell(word, j, ways[way][1]);
          const button = h("button", { type: "button", "aria-label": label, "aria-pressed": "false", onclick: () => pick(j, k, way) }, sign);
          Object.assign(button.dataset, { j, k, way });
          return button;
        }));
      });
      rows.push(h("tr", {}, h("th", { scope: "row" }, h("i", {}, "h"), h("sub", {}, String(j))), cells));
    }
    rows.push(h("tr", { class: "below" }, h("td", {}), words.map((word, k) => h("td", { class: k === page.at ? "at" : null, dir: "auto" }, word))));
    fill(grid, h("table", {}, h("tbody", {}, rows)));
    mark();
    roving(grid);
  };

  const pick = (j, k, way) => {
    Object.assign(page, { layer: j, way: j ? way : page.way });
    const moved = k !== page.at;
    page.at = k;
    if (moved) choose(k);
    else mark();
    grid.querySelector("[aria-pressed=true]").focus();
  };

  /** The chosen arrow, and everything that it has read. */
  const mark = () => {
    const { at, layer, way } = page, words = page.sentence.tokens;
    const read = (k) => layer > 0 && (way === "forward" ? k <= at : k >= at);
    for (const button of grid.querySelectorAll("button")) {
      const j = Number(button.dataset.j), k = Number(button.dataset.k), mine = j === 0 || button.dataset.way === way;
      button.setAttribute("aria-pressed", j === layer && k === at && (j === 0 || mine));
      button.classList.toggle("read", mine && j <= layer && read(k));
    }
    grid.querySelectorAll(".below td").forEach((cell, k) => {
      if (k) cell.classList.toggle("read", read(k - 1));
    });
    const sides = { forward: text.how.forward, backward: text.how.backward };
    fill(reading, layer ? text.how.reads(words[at], layer, sides[way], words.map((word, k) => (read(k) ? page.sentence.pieces[k] + word : "")).join("").trim()) : text.how.alone(words[at]));
  };

  /** The values of the layers and of their mix as colours. */
  const drawStrips = () => {
    const own = page.sentence.layers[page.at], shares = softmax(weights(layers)), result = mixed(own, shares, gamma());
    const step = Math.max(1, Math.floor(own[0].length / SHOWN)), most = Math.max(...own.map((layer) => quantile(layer)));
    const strip = (values, label) => {
      const cells = [];
      for (let i = 0; i < SHOWN && i * step < values.length; i++) {
        const value = values[i * step];
        cells.push(h("i", { class: value < 0 ? "far" : null, "--strength": Math.min(1, Math.abs(value) / most).toFixed(2) }));
      }
      return h("div", { class: "strip", role: "img", "aria-label": label }, cells);
    };
    const rows = own.map((layer, j) => [h("span", { class: "term" }, h("b", {}, shares[j].toFixed(2)), " · ", h("i", {}, "h"), h("sub", {}, String(j))), strip(layer, text.how.strip(j))]).reverse();
    fill(strips, rows, h("span", { class: "term sum" }, h("b", {}, text.how.result)), strip(result, text.how.resultStrip), h("p", { class: "note" }, text.how.values(Math.min(SHOWN, own[0].length), own[0].length)));
  };

  const step = (number, [title, note], ...children) => h("li", { class: "card step" }, h("h2", {}, h("span", { class: "count", "aria-hidden": "true" }, String(number)), title), h("p", { class: "note" }, note), children);
  const element = h(
    "div",
    { class: "view narrow how" },
    heading(text.how.heading, text.how.lead),
    h("ol", { class: "steps" }, step(1, text.how.text, box), step(2, text.how.tokens, tokens), step(3, text.how.characters, letters), step(4, text.how.layers, grid, reading), step(5, text.how.mix, strips, mix.element)),
  );
  load(given?.[2] || example, given ? Number(given[1]) : first);
  return element;
}

/** The value that 95 % of the numbers do not exceed. */
function quantile(values) {
  const sorted = [...values].map(Math.abs).sort((a, b) => a - b);
  return sorted[Math.floor(0.95 * (sorted.length - 1))] || 1;
}

// View 1: sentences whose words can be chosen, and what is known of the chosen one. Knows: shared parts, the server.

import { fillIn, nearestUses, similar } from "./api.js";
import { fill, h, number, percent } from "./dom.js";
import { bars, field, heading, legend, mixControl, placeOf, select, sentenceLine, shade, source, working } from "./parts.js";
import { fromIndex, gamma, set, state, weights } from "./state.js";
import { text } from "./texts.js";
import { Uses } from "./uses.js";
import { softmax } from "./vectors.js";

export function words(app) {
  const list = h("div", { class: "sentences", "aria-live": "off" }), panel = h("section", { class: "card panel" });
  const mix = mixControl(app.model.layers, app.learned, () => page && recolour());
  let page = null;

  const load = () =>
    working(list, () => app.load(), (found) => {
      page = { ...found, at: app.chosen(found.sentences) };
      page.lines = found.sentences.map((one, s) => sentenceLine(one, text.words.sentence(s + 1), (k) => choose([s, k])));
      fill(list, h("ol", {}, page.lines.map((line) => h("li", {}, line.element))));
      show();
    });

  const choose = (at) => {
    page.at = at;
    set({ at: at.join(".") }, true);
    show();
  };

  const recolour = () => {
    page.uses = new Uses(page.sentences, page.background, softmax(weights(app.model.layers)), gamma());
    const shades = page.at && page.uses.shades(page.at), word = page.at && page.uses.word(page.at).toLowerCase();
    page.lines.forEach(({ buttons }, s) => {
      const { tokens } = page.sentences[s];
      shade(buttons, tokens, shades?.[s], (k) => tokens[k].toLowerCase() === word, page.at?.[0] === s ? page.at[1] : -1);
    });
    if (page.at && !fromIndex(app.model)) showUses();
  };

  const nearest = h("div", { class: "six" }), expected = h("div", { class: "eight" }), neighbours = h("div", { class: "chips" });

  const searchIndex = () => {
    const [s, k] = page.at;
    working(nearest, () => nearestUses(app.model.name, page.sentences[s].tokens, k, 6), (found) => {
      if (!fromIndex(app.model)) return;
      const rows = found.map((use) => ({ name: [context(use, use.position, 8), " ", placeOf(use)], value: use.cosine, shown: number(use.cosine), far: use.cosine < 0 }));
      fill(nearest, h("p", { class: "note" }, text.words.indexNote), h("div", { class: "found" }, bars(rows)));
    });
  };

  const showUses = () => {
    const { repeated, found } = page.uses.nearest(page.at, 6);
    const named = ([s, k]) => (repeated ? context(page.sentences[s], k) : [h("b", {}, page.sentences[s].tokens[k]), ` ${text.words.inSentence(s + 1)}`]);
    fill(nearest, h("p", { class: "note" }, repeated ? text.words.usesNote : text.words.onceNote), bars(found.map(({ place, value }) => ({ name: named(place), value, shown: number(value), far: value < 0, choose: () => choose(place) }))));
  };

  const show = () => {
    recolour();
    if (!page.at) {
      fill(panel, h("p", { class: "note" }, text.words.none));
      return;
    }
    const [s, k] = page.at, { tokens } = page.sentences[s], word = tokens[k], { model } = app;
    fill(
      panel,
      h("h2", { class: "chosen", "aria-live": "polite" }, h("span", { dir: "auto" }, word), h("small", {}, text.words.inSentence(s + 1))),
      h("h3", {}, text.words.uses),
      source(model, show),
      nearest,
      h("h3", {}, text.words.expected),
      h("p", { class: "note" }, text.words.expectedNote),
      expected,
      h("h3", {}, text.words.similar),
      h("p", { class: "note" }, text.words.similarNote),
      neighbours,
    );
    if (fromIndex(model)) searchIndex();
    if (model.softmax) working(expected, () => fillIn(model.name, tokens, k, 7), showExpected);
    else fill(expected, h("p", { class: "note" }, text.words.noSoftmax));
    if (model.words) working(neighbours, () => similar(model.name, word, 8), showNeighbours);
    else fill(neighbours, h("p", { class: "note" }, text.words.noSimilar));
  };

  const showExpected = ({ candidates, actual, rank }) => {
    const most = candidates[0]?.probability ?? 1;
    const rows = candidates.map(({ word, probability }) => ({ name: word, value: probability, shown: percent(probability), chosen: word === actual.word }));
    fill(expected, bars(rows, { most, plain: true }), h("p", { class: "note" }, rank === null ? text.words.unknown(actual.word) : text.words.rank(actual.word, rank)));
  };

  const showNeighbours = (found) => fill(neighbours, h("ul", {}, found.map(({ word, cosine }) => h("li", {}, h("span", { dir: "auto" }, word), h("small", {}, number(cosine))))));

  const element = h(
    "div",
    { class: "view" },
    heading(text.words.heading, text.words.lead),
    h("div", { class: "columns three" }, h("section", { class: "card" }, toolbar(app, load), list, legend()), panel, mix.element),
  );
  load();
  return element;
}

/** Which sentences are shown, and a field to write others. */
function toolbar(app, load) {
  const options = Object.keys(app.sets).map((name) => [name, name]);
  const element = h("div", { class: "toolbar" }), editor = h("div", { class: "editor", hidden: true });
  const { element: box, area } = field(text.words.label, app.texts().join("\n"), () => {}, 8);
  const choose = (name) => {
    if (name === "") return edit();
    set({ set: name, text: "", at: "" }, true);
    area.value = app.texts().join("\n");
    editor.hidden = true;
    load();
  };
  const edit = () => {
    editor.hidden = false;
    area.focus();
  };
  const use = () => {
    const written = area.value.trim();
    if (!written) return fill(status, text.words.empty);
    fill(status);
    const own = written !== app.sets[app.set].join("\n");
    if (own !== (state.text !== "") || written !== state.text) set({ text: own ? written : "", at: "" }, true);
    fill(element, parts());
    editor.hidden = true;
    load();
  };
  const status = h("p", { class: "note", role: "alert" });
  editor.append(box, status, h("button", { type: "button", class: "main", onclick: use }, text.words.done));
  const parts = () => [select(text.words.examples, [...options, ["", text.words.own]], state.text ? "" : app.set, choose), h("button", { type: "button", onclick: () => (editor.hidden ? edit() : (editor.hidden = true)) }, text.words.edit)];
  fill(element, parts());
  return [element, editor];
}

/** Some words around a word, the word in bold. */
export function context({ tokens, pieces }, k, reach = 4) {
  const joined = (from, to) => tokens.slice(from, to).map((token, i) => (i + from === 0 ? "" : pieces[from + i].replace(/\s+/gu, " ")) + token).join("");
  const from = Math.max(0, k - reach), wanted = k + reach + 1, to = wanted >= tokens.length - 1 ? tokens.length : wanted, gap = k > 0 ? pieces[k].replace(/\s+/gu, " ") : "";
  return [from > 0 ? "…" : "", joined(from, k).trimStart(), gap, h("b", {}, tokens[k]), joined(k + 1, to), to < tokens.length ? "…" : ""];
}

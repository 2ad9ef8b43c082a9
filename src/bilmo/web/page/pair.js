// View 2: two sentences, and how similar each word of one is to a word of the other. Knows: shared parts, the server.

import { fill, h, number } from "./dom.js";
import { PAIRS } from "./examples.js";
import { bars, field, heading, legend, mixControl, sentenceLine, shade, working } from "./parts.js";
import { gamma, pointed, set, state, weights } from "./state.js";
import { text } from "./texts.js";
import { Uses } from "./uses.js";
import { cosine, mixed, softmax } from "./vectors.js";

export function pair(app) {
  const [first, second, start] = PAIRS[app.lang];
  const mix = mixControl(app.model.layers, app.learned, () => page && recolour());
  const result = h("section", { class: "card layers-compared" });
  const sides = [0, 1].map((side) => {
    const key = "ab"[side], given = [first, second][side];
    const { element, area } = field([text.pair.first, text.pair.second][side], state[key] || given, (value) => {
      set({ [key]: value.trim() === given ? "" : value.trim(), pick: "" });
      load();
    }, 2);
    return { field: element, area, shown: h("div", { class: "shown" }) };
  });
  let page = null;

  const load = () =>
    working(result, () => app.load(sides.map(({ area }) => area.value).map((line) => line || " ")), (found) => {
      // The texts may have several sentences each: they are counted to know where the second side begins.
      const texts = sides.map(({ area }) => area.value || " ");
      return app.load([texts[0]]).then(({ sentences }) => begin(found, sentences.length));
    });

  const begin = (found, count) => {
    page = { ...found, side: (s) => Number(s >= count) };
    page.lines = page.sentences.map((one, s) => sentenceLine(one, [text.pair.first, text.pair.second][page.side(s)], (k) => choose([s, k])));
    sides.forEach(({ shown }, side) => fill(shown, page.lines.filter((_, s) => page.side(s) === side).map((line) => line.element)));
    const given = pointed(state.pick || (state.a || state.b ? "" : start));
    page.at = given && page.sentences[given[0]]?.tokens[given[1]] !== undefined ? given : null;
    recolour();
  };

  const choose = (at) => {
    page.at = at;
    set({ pick: at.join(".") }, true);
    recolour();
  };

  const recolour = () => {
    const shares = softmax(weights(app.model.layers));
    const uses = new Uses(page.sentences, page.background, shares, gamma()), { at } = page;
    const shades = at && uses.shades(at), word = at && uses.word(at).toLowerCase();
    page.lines.forEach(({ buttons }, s) => {
      const { tokens } = page.sentences[s];
      shade(buttons, tokens, shades?.[s], (k) => tokens[k].toLowerCase() === word, at?.[0] === s ? at[1] : -1);
    });
    const others = at ? page.sentences.flatMap(({ tokens }, s) => (page.side(s) === page.side(at[0]) ? [] : tokens.map((_, k) => [s, k]))) : [];
    if (others.length === 0) {
      fill(result, h("p", { class: "note" }, text.pair.nothing));
      return;
    }
    const best = (places) => places.reduce((a, b) => (shades[b[0]][b[1]] > shades[a[0]][a[1]] ? b : a));
    const alike = others.filter((place) => uses.word(place).toLowerCase() === word), partner = best(alike.length ? alike : others);
    const vectors = [at, partner].map(([s, k]) => page.sentences[s].layers[k]);
    const plain = vectors[0].map((layer, j) => cosine(layer, vectors[1][j])), together = cosine(...vectors.map((one) => mixed(one, shares)));
    const row = (name, value) => ({ name, value, shown: number(value), far: value < 0 });
    fill(
      result,
      h("h2", {}, text.pair.byLayer(uses.word(at), uses.word(partner))),
      h("p", { class: "note" }, text.pair.byLayerLead),
      bars([...plain.map((value, j) => row([h("i", {}, "h"), h("sub", {}, String(j)), h("span", { class: "aside" }, ` ${text.mix.layer(j, plain.length - 1)}`)], value)), row("ELMo", together)]),
    );
  };

  const element = h(
    "div",
    { class: "view" },
    heading(text.pair.heading, text.pair.lead),
    h("div", { class: "pair" }, sides.map((side) => h("section", { class: "card" }, side.shown, side.field))),
    legend(),
    h("div", { class: "columns even" }, result, mix.element),
  );
  load();
  return element;
}

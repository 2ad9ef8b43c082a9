// Parts that several views share: sentences, the mix, lists with bars, problems. Knows: the DOM, texts, the state.

import { useToken } from "./api.js";
import { fill, h, number, roving } from "./dom.js";
import { fromIndex, gamma, set, weights } from "./state.js";
import { text } from "./texts.js";
import { softmax } from "./vectors.js";

/** The head of a view. */
export function heading(title, lead) {
  return h("header", { class: "heading" }, h("h1", {}, title), h("p", { class: "lead" }, lead));
}

/** A sentence whose words can be chosen. `buttons` are its words. */
export function sentenceLine(sentence, label, choose) {
  const buttons = sentence.tokens.map((word, k) => h("button", { type: "button", class: "word", onclick: () => choose(k) }, word));
  const element = h("p", { class: "sentence", role: "group", "aria-label": label, dir: "auto" }, buttons.map((one, k) => [sentence.pieces[k].replace(/\s+/gu, " "), one]));
  roving(element);
  return { element, buttons };
}

/** Show how similar each word is to the chosen one; below zero only where `alike` says that it is the same word. */
export function shade(buttons, tokens, values, alike, chosen) {
  buttons.forEach((button, k) => {
    const value = values ? values[k] : 0, far = value < 0 && alike(k), here = k === chosen;
    const strength = here ? 0 : Math.max(0, Math.min(1, far ? -1.4 * value : (value - 0.08) / 0.85)) ** 0.8;
    button.style.setProperty("--strength", strength.toFixed(3));
    button.classList.toggle("far", far);
    button.classList.toggle("same", Boolean(values) && alike(k) && !here);
    button.setAttribute("aria-pressed", here);
    const label = here ? text.words.chosen(tokens[k]) : values ? text.words.similarity(tokens[k], number(value)) : tokens[k];
    button.setAttribute("aria-label", label);
    button.title = values && !here ? number(value) : "";
  });
}

/** Where a use of the index stands. */
export function placeOf({ file, line }) {
  return h("small", { title: `${file}:${line}` }, `${file.split("/").at(-1)}:${line}`);
}

/** A choice between the sentences on the page and the index, if the model has one. */
export function source(model, changed) {
  if (!model.index) return null;
  const choose = (value) => {
    set({ uses: value }, true);
    changed();
    document.querySelector(".from select").focus(); // it was built again
  };
  return h("div", { class: "from" }, select(text.source.label, [["", text.source.page], ["index", text.source.index(model.index.uses)]], fromIndex(model) ? "index" : "", choose));
}

/** What the colours mean. */
export function legend() {
  return h("p", { class: "legend", "aria-hidden": "true" }, h("span", {}, text.words.less), h("i", {}), h("span", {}, text.words.more));
}

/** Rows with a bar each: [{name, value, shown, far, choose, chosen}]; plain ones are shares, not similarities. */
export function bars(rows, { most = 1, plain = false } = {}) {
  return h(
    "ul",
    { class: plain ? "bars plain" : "bars" },
    rows.map(({ name, value, shown, far, choose, chosen }) => {
      const inside = [h("span", { class: "bar", "--part": Math.max(0, Math.min(1, Math.abs(value) / most)).toFixed(3) }), h("span", { class: "name", dir: "auto" }, name), h("span", { class: "value" }, shown)];
      const kind = `row${far ? " far" : ""}${chosen ? " chosen" : ""}`;
      return h("li", {}, choose ? h("button", { type: "button", class: kind, onclick: choose }, inside) : h("div", { class: kind }, inside));
    }),
  );
}

/** What went wrong, in place, with a way on. */
export function problem(error, again) {
  const known = text.problems[error.kind], message = known ?? error.message;
  const box = h("div", { class: "problem", role: "alert" }, h("p", {}, message));
  if (error.kind === "unauthorized") {
    const field = h("input", { type: "password", id: "token", autocomplete: "off" });
    const used = (event) => {
      event.preventDefault();
      useToken(field.value.trim());
      again();
    };
    box.append(h("form", { onsubmit: used }, h("label", { for: "token" }, text.token), field, h("button", { class: "main" }, text.use)), h("p", { class: "note" }, text.tokenHelp));
  } else if (again && error.kind !== "invalid" && error.kind !== "too_large") {
    box.append(h("button", { type: "button", onclick: again }, text.again));
  }
  return box;
}

/**
 * Put the result of some work into an element. The old content stays, dimmed, until the result is there; work that
 * was started later wins.
 */
export function working(element, work, show) {
  const turn = (element.turn = (element.turn ?? 0) + 1);
  element.setAttribute("aria-busy", "true");
  if (!element.hasChildNodes()) fill(element, h("p", { class: "note" }, text.working));
  return work()
    .then((found) => turn === element.turn && show(found))
    .catch((error) => {
      if (turn !== element.turn) return;
      if (!error.kind) console.error(error);
      fill(element, problem(error, () => working(element, work, show)));
    })
    .finally(() => turn === element.turn && element.removeAttribute("aria-busy"));
}

/** The weights of the layers and gamma, with the formula of the paper. `changed` is called on every move. */
export function mixControl(layers, learned, changed) {
  const formula = h("p", { class: "formula", role: "img" }), sliders = [], given = [], shares = [];
  const scale = h("input", { type: "range", min: 0.1, max: 1.2, step: 0.01, value: gamma(), "aria-label": text.mix.gamma }), scaleValue = h("span", { class: "w", "aria-hidden": "true" });
  const term = (j, share) => [j ? " + " : "", h("b", {}, share), "\u2009", h("i", {}, "h"), h("sub", {}, String(j))];
  const show = () => {
    const values = softmax(weights(layers)).map((s) => number(s));
    const scaled = number(gamma());
    fill(formula, h("i", {}, "ELMo"), " = ", h("b", { class: "gamma" }, scaled), "\u2009(\u2009", values.map((s, j) => term(j, s)), "\u2009)");
    formula.setAttribute("aria-label", text.mix.formula(scaled, values));
    weights(layers).forEach((w, j) => {
      sliders[j].value = w;
      sliders[j].setAttribute("aria-valuetext", `w ${number(w, 1)}, s ${values[j]}`);
      given[j].textContent = number(w, 1);
      shares[j].textContent = values[j];
      shares[j].style.setProperty("--part", values[j]);
    });
    scale.value = gamma();
    scaleValue.textContent = scaled;
  };
  const move = (changes) => {
    set(changes);
    show();
    changed();
  };
  scale.addEventListener("input", () => move({ gamma: scale.value }));
  const rows = Array.from({ length: layers }, (_, j) => {
    const slider = h("input", { type: "range", min: -5, max: 5, step: 0.1, "aria-label": text.mix.weight(j) });
    slider.addEventListener("input", () => {
      const all = weights(layers);
      all[j] = Number(slider.value);
      move({ w: all.every((w) => w === 0) ? "" : all.join(",") });
    });
    sliders.push(slider);
    given.push(h("span", { class: "w", "aria-hidden": "true" }));
    shares.push(h("span", { class: "share", "aria-hidden": "true" }));
    return h("div", { class: "layer" }, h("span", { class: "what" }, h("i", {}, "h"), h("sub", {}, String(j)), ` ${text.mix.layer(j, layers - 1)}`), slider, given[j], shares[j]);
  });
  const only = (j) => Array.from({ length: layers }, (_, k) => (k === j ? 5 : -5)).join(",");
  const preset = (name, changes) => h("button", { type: "button", onclick: () => move(changes) }, name);
  const presets = [
    preset(text.mix.presets.mean, { w: "", gamma: "1" }),
    ...Array.from({ length: layers }, (_, j) => preset(text.mix.presets.only(j), { w: only(j) })),
    ...learned.map(({ name, mix }) => preset(text.mix.presets.task(name), { w: mix.map((s) => Math.max(-5, Math.log(s + 1e-9)).toFixed(3)).join(","), gamma: "1" })),
  ];
  const element = h(
    "section",
    { class: "card mix" },
    h("h2", {}, text.mix.heading),
    h("p", { class: "note" }, text.mix.lead),
    h("p", { class: "formula", "aria-hidden": "true" }, h("i", {}, "ELMo"), " = ", h("i", {}, "γ"), " Σ", h("sub", {}, h("i", {}, "j")), " ", h("i", {}, "s"), h("sub", {}, h("i", {}, "j")), "\u2009", h("i", {}, "h"), h("sub", {}, h("i", {}, "j")), h("span", { class: "aside" }, ",\u2003"), h("i", {}, "s"), " = softmax(", h("i", {}, "w"), ")"),
    formula,
    h("div", { class: "layers" }, rows, h("div", { class: "layer" }, h("span", { class: "what" }, h("i", {}, "γ"), " gamma"), scale, scaleValue)),
    h("div", { class: "presets", role: "group", "aria-label": text.mix.preset }, presets),
  );
  show();
  return { element, show };
}

/** A field that grows with its text and reports changes when typing pauses. */
export function field(label, value, changed, rows = 1) {
  let timer;
  const id = `field-${label.replace(/\W+/g, "")}-${(field.count = (field.count ?? 0) + 1)}`;
  const area = h("textarea", { id, rows, value, dir: "auto", spellcheck: "false" });
  area.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => changed(area.value), 350);
  });
  return { element: h("div", { class: "field" }, h("label", { for: id }, label), area), area };
}

/** A choice among some names: [[value, name], ...]. */
export function select(label, options, value, changed) {
  const id = `select-${(select.count = (select.count ?? 0) + 1)}`;
  const box = h("select", { id, onchange: () => changed(box.value) }, options.map(([key, name]) => h("option", { value: key, selected: key === value }, name)));
  return h("div", { class: "choice" }, h("label", { for: id }, label), box);
}


// The start of the page: header, views, language, theme. Knows: every view.

import { embed, info } from "./api.js";
import { fill, h } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { how } from "./how.js";
import { map } from "./map.js";
import { pair } from "./pair.js";
import { problem } from "./parts.js";
import { pointed, read, set, state, VIEWS } from "./state.js";
import { tasks } from "./tasks.js";
import { language, speak, text } from "./texts.js";
import { repeated } from "./uses.js";
import { words } from "./words.js";

const SHOW = { words, pair, map, tasks, how };
const THEMES = ["auto", "light", "dark"];

/** What the views know of the server, the model and the sentences. */
const app = {
  info: null,
  get model() {
    return this.info.models.find((one) => one.name === state.model) ?? this.info.models[0];
  },
  /** Language of the texts to begin with. */
  get lang() {
    return Object.hasOwn(EXAMPLES, this.model.lang) ? this.model.lang : "en";
  },
  get sets() {
    return EXAMPLES[this.lang];
  },
  get set() {
    return Object.hasOwn(this.sets, state.set) ? state.set : Object.keys(this.sets)[0];
  },
  /** The mixes that tasks of this model have learned. */
  get learned() {
    const own = this.info.tasks.filter((task) => task.model === this.model.name && task.mixes?.length);
    return own.map((task) => ({ name: task.name, mix: task.mixes[0].weights })).filter(({ mix }) => mix.length === this.model.layers);
  },
  /** Own sentences, or those of the examples. */
  texts() {
    return state.text ? state.text.split("\n").filter((line) => line.trim()) : this.sets[this.set];
  },
  /** The sentences with their layers; and all examples, which make the means better. */
  async load(texts = this.texts()) {
    const examples = Object.values(this.sets).flat();
    const found = await embed(this.model.name, [...texts, ...examples]);
    return { sentences: found.slice(0, texts.length).flat(), background: found.slice(texts.length).flat() };
  },
  /** The place of the chosen word, or null. */
  chosen(sentences) {
    const at = pointed(state.at);
    if (at && sentences[at[0]]?.tokens[at[1]] !== undefined) return at;
    const word = state.text ? repeated(sentences)[0]?.[0] : this.set;
    const s = sentences.findIndex((one) => one.tokens.some((token) => token.toLowerCase() === word));
    return s < 0 ? null : [s, sentences[s].tokens.findIndex((token) => token.toLowerCase() === word)];
  },
  go(view) {
    set({ view }, true);
    show();
  },
};

const main = h("main", { id: "content", tabindex: -1 });

function show() {
  document.title = `${text.views[state.view]} · bilmo`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.dataset.view = state.view;
  fill(main, SHOW[state.view](app));
}

function header() {
  const links = VIEWS.map((view) => {
    const link = h("a", { href: `#${view}` }, text.views[view]);
    link.dataset.view = view;
    link.addEventListener("click", (event) => {
      event.preventDefault();
      app.go(view);
    });
    return link;
  });
  const models = app.info?.models ?? [];
  const choose = (event) => {
    const before = app.lang;
    set({ model: event.target.value, at: "", pick: "", how: "", w: "" }, true);
    if (app.lang !== before) set({ set: "", text: "", a: "", b: "", how: "" });
    show();
  };
  const model = models.length > 0 && [h("label", { for: "model" }, text.model), h("select", { id: "model", "aria-label": text.model, onchange: choose }, models.map(({ name }) => h("option", { value: name, selected: name === app.model.name }, name)))];
  const theme = localStorage.getItem("bilmo-theme") ?? "auto";
  const themes = h("button", { type: "button", class: "icon", "aria-label": text.themes[theme], title: text.themes[theme], onclick: nextTheme }, { auto: "◐", light: "○", dark: "●" }[theme]);
  const speaks = h("button", { type: "button", lang: language === "en" ? "zh" : "en", title: text.languageHint, onclick: otherLanguage }, text.language);
  return h(
    "header",
    { class: "top" },
    h("a", { class: "skip", href: "#content", onclick: skip }, text.skip),
    h("div", { class: "brand" }, h("strong", {}, "bilmo"), h("span", {}, text.tagline)),
    h("div", { class: "tools" }, model, speaks, themes),
    h("nav", { "aria-label": "bilmo" }, links),
  );
}

function skip(event) {
  event.preventDefault(); // the address keeps the state
  main.focus();
}

function otherLanguage() {
  speak(language === "en" ? "zh" : "en");
  start();
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(localStorage.getItem("bilmo-theme") ?? "auto") + 1) % THEMES.length];
  localStorage.setItem("bilmo-theme", next);
  document.documentElement.dataset.theme = next;
  document.querySelector("header.top").replaceWith(header());
  show();
  document.querySelector("button.icon").focus();
}

/** Build the whole page: at the start, and in another language. */
async function start() {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  document.documentElement.dataset.theme = localStorage.getItem("bilmo-theme") ?? "auto";
  fill(document.body, header(), main);
  try {
    app.info ??= await info();
  } catch (error) {
    fill(main, problem(error, start));
    return;
  }
  if (app.info.models.length === 0) {
    fill(main, h("p", { class: "problem", role: "alert" }, text.noModels));
    return;
  }
  fill(document.body, header(), main);
  show();
}

read();
window.addEventListener("hashchange", () => {
  read();
  if (app.info?.models.length) show();
});
start();

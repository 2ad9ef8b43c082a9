// What is shown, kept after # in the address: it never reaches the server, and the link can be shared.
// Knows: the address. Blind to: the page.

export const VIEWS = ["words", "pair", "map", "tasks", "how"];
const FIRST = { view: "words", model: "", set: "", text: "", at: "", a: "", b: "", pick: "", w: "", gamma: "1", task: "", input: "", how: "", token: "", uses: "", word: "" };
/** The view; the model; name of the example sentences, or own sentences; the chosen word as `sentence.token`; the two
 *  sentences and the word chosen in them; weights of the layers and gamma; the task and its input; the sentence and the
 *  chosen token of "How it works"; "index" if uses are searched there, and the word whose uses are shown. */

export const state = { ...FIRST };

export function read() {
  const [view, rest = ""] = location.hash.slice(1).split("?", 2);
  const given = new URLSearchParams(rest);
  for (const key of Object.keys(FIRST)) state[key] = given.get(key) ?? FIRST[key];
  state.view = VIEWS.includes(view) ? view : FIRST.view;
}

/** Change the state and the address. `step`: the back button of the browser returns to the state before. */
export function set(changes, step = false) {
  Object.assign(state, changes);
  const shown = new URLSearchParams();
  for (const key of Object.keys(FIRST)) if (key !== "view" && state[key] !== FIRST[key]) shown.set(key, state[key]);
  const address = `#${state.view}${shown.size ? `?${shown}` : ""}`;
  if (address === location.hash) return;
  if (step) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

/** Whether uses come from the index of the model, not from the sentences on the page. */
export function fromIndex(model) {
  return Boolean(model.index) && state.uses === "index";
}

/** The weight of each layer. */
export function weights(layers) {
  const given = state.w.split(",").map(Number);
  return Array.from({ length: layers }, (_, j) => (Number.isFinite(given[j]) ? Math.max(-5, Math.min(5, given[j])) : 0));
}

export function gamma() {
  const given = Number(state.gamma);
  return Number.isFinite(given) ? Math.max(0.1, Math.min(1.2, given)) : 1;
}

/** Two numbers such as "3.1"; null if there are none. */
export function pointed(text) {
  const found = /^(\d+)\.(\d+)$/.exec(text);
  return found ? [Number(found[1]), Number(found[2])] : null;
}

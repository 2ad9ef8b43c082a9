// View 4: the fitted tasks of the server, one tab each. Knows: shared parts, what each kind of task takes and answers.

import { predict } from "./api.js";
import { fill, h, percent, roving } from "./dom.js";
import { bars, field, heading, working } from "./parts.js";
import { set, state } from "./state.js";
import { language, text } from "./texts.js";

const TRY = {
  en: { text: "Anna Lee lives in London with her brother.", premise: "A man is playing a guitar on the street.", hypothesis: "A man is making music.", context: "The village lies on the left bank of the Danube. It has a church, a mill and four hundred people.", question: "Where does the village lie?", marked: "The <e1>roof</e1> of the <e2>house</e2> was red." },
  zh: { text: "宝玉同黛玉来到荣国府。", premise: "一个人在街上弹琴。", hypothesis: "有人在演奏音乐。", context: "这座村庄在河的左岸，村里有一座庙和四百户人家。", question: "村庄在哪里？", marked: "<e1>屋顶</e1>是<e2>房子</e2>的一部分。" },
};
const FIELDS = { entail: ["premise", "hypothesis"], answer: ["context", "question"], relate: ["marked"] };
const EXAMPLES = ["bilmo fit tag en --train entities.conll -o entities", "bilmo serve en --task entities"];

export function tasks(app) {
  const all = app.info.tasks;
  const element = h("div", { class: "view narrow" }, heading(text.tasks.heading, text.tasks.lead));
  if (all.length === 0) {
    element.append(h("section", { class: "card" }, h("p", {}, text.tasks.none, " ", text.tasks.how), h("pre", { tabindex: 0 }, EXAMPLES.join("\n"))));
    return element;
  }
  const task = all.find((one) => one.name === state.task) ?? all[0];
  const tabs = h(
    "div",
    { class: "tabs", role: "tablist", "aria-label": text.tasks.heading },
    all.map((one) => h("button", { type: "button", role: "tab", id: `tab-${one.name}`, "aria-selected": String(one === task), "aria-controls": "task", onclick: () => open(one) }, one.name, h("small", {}, text.tasks.kinds[one.kind] ?? one.kind))),
  );
  roving(tabs);
  const open = (one) => {
    set({ task: one.name, input: "" }, true);
    const next = tasks(app);
    element.replaceWith(next);
    next.querySelector("[role=tab][aria-selected=true]").focus();
  };
  element.append(tabs, h("section", { class: "card", role: "tabpanel", id: "task", "aria-labelledby": `tab-${task.name}` }, form(app, task)));
  requestAnimationFrame(() => tabs.querySelector("[aria-selected=true]").scrollIntoView({ block: "nearest", inline: "nearest" }));
  return element;
}

function form(app, task) {
  const names = FIELDS[task.kind] ?? ["text"], lang = app.info.models.find((one) => one.name === task.model)?.lang;
  const given = state.input ? state.input.split("\u0000") : [];
  const fields = names.map((name, i) => field(text.tasks[name], given[i] ?? TRY[lang in TRY ? lang : "en"][name], () => {}, name === "context" ? 4 : 2));
  const result = h("div", { class: "prediction" }, h("p", { class: "note" }, text.tasks.before));
  const run = (event) => {
    event?.preventDefault();
    const values = fields.map(({ area }) => area.value);
    if (values.some((value) => !value.trim())) {
      fill(result, h("p", { class: "problem", role: "alert" }, text.tasks.empty));
      return;
    }
    set({ task: task.name, input: values.join("\u0000") });
    working(result, () => asked(task, values), (found) => fill(result, found.map(SHOWN[task.kind] ?? written)));
  };
  if (state.input) run();
  const shares = task.mixes?.[0]?.weights;
  const learned = shares && [h("h2", {}, text.tasks.mix), bars(shares.map((value, j) => ({ name: [h("i", {}, "h"), h("sub", {}, String(j)), h("span", { class: "aside" }, ` ${text.mix.layer(j, shares.length - 1)}`)], value, shown: percent(value) })), { plain: true })];
  return [
    language === "en" && h("p", { class: "note" }, task.summary),
    h("form", { onsubmit: run }, fields.map((one) => one.element), h("button", { class: "main" }, text.tasks.run)),
    h("h2", {}, text.tasks.result),
    result,
    learned,
  ];
}

/** The predictions of a task. */
async function asked(task, [first, second]) {
  const bodies = { entail: { pairs: [[first, second]] }, answer: { context: first, questions: [second] } };
  const body = bodies[task.kind] ?? { text: first };
  if (task.kind in SHOWN) body.probabilities = true;
  return (await predict(task.name, body)).results;
}

/** Labels as bars, the most probable one first. */
function classes({ label, probabilities }) {
  const rows = Object.entries(probabilities ?? { [label]: 1 }).sort((a, b) => b[1] - a[1]);
  return bars(rows.slice(0, 12).map(([name, value]) => ({ name, value, shown: percent(value), chosen: name === String(label) })), { plain: true });
}

/** Spans of BIO, IOB1 or BIOES tags: [kind, first, last]. */
function spans(tags) {
  const found = [];
  tags.forEach((tag, k) => {
    const [, mark, kind] = /^([BIESLUO])(?:-(.*))?$/.exec(tag) ?? [null, null, null], last = found.at(-1);
    if (!kind) return;
    if ((mark === "I" || mark === "E" || mark === "L") && last && last[0] === kind && last[2] === k - 1 && !last[3]) last[2] = k;
    else found.push([kind, k, k]);
    if (mark === "E" || mark === "L") found.at(-1)[3] = true;
  });
  return found;
}

/** The same name always has the same colour. */
const hues = new Map();
function hue(name) {
  if (!hues.has(name)) hues.set(name, (48 + 137.5 * hues.size) % 360);
  return hues.get(name).toFixed(0);
}

function mark(inside, name, colour, title) {
  return h("mark", { "--hue": hue(colour), title }, inside, name !== "" && h("sub", {}, name));
}

/** Tokens with some spans marked; a space between tokens, except in Chinese. */
function marked(tokens, found) {
  const gap = (k) => (k > 0 && !(/\p{Script=Han}|[，。：；？！、“”《》]/u.test(tokens[k]) && /\p{Script=Han}|[，。：；？！、“”《》]/u.test(tokens[k - 1])) ? " " : "");
  const joined = (from, to) => tokens.slice(from, to + 1).map((token, i) => (i ? gap(from + i) : "") + token).join("");
  const out = [];
  let next = 0;
  for (const [name, first, last, , colour = name, title] of found) {
    if (first < next) continue; // spans do not cross
    out.push(next < first ? gap(next) + joined(next, first - 1) : "", gap(first), mark(joined(first, last), name, colour, title));
    next = last + 1;
  }
  if (next < tokens.length) out.push(gap(next), joined(next, tokens.length - 1));
  return h("p", { class: "marked", dir: "auto" }, out);
}

function tagged({ tokens, tags, probabilities }) {
  const chunked = tags.every((tag) => tag === "O" || /^[BIESLU]-/.test(tag));
  if (!chunked) {
    return h("p", { class: "each", dir: "auto" }, tokens.map((token, k) => h("span", { "--hue": hue(tags[k]), title: probabilities ? percent(probabilities[k]) : null }, token, h("sub", {}, tags[k]))));
  }
  const found = spans(tags).map(([kind, first, last]) => [kind, first, last, null, kind, probabilities ? percent(Math.min(...probabilities.slice(first, last + 1))) : null]);
  return [marked(tokens, found), found.length === 0 && h("p", { class: "note" }, text.tasks.nothing)];
}

function roles({ words, verbs }) {
  if (!verbs.length) return [marked(words, []), h("p", { class: "note" }, text.tasks.nothing)];
  return verbs.map(({ tags }) => marked(words, spans(tags)));
}

/** begin and end count Unicode characters. */
function answered({ answer, begin, end, probability, context }) {
  const letters = Array.from(context), share = probability === undefined ? "" : percent(probability);
  if (answer === null) return [h("p", { class: "answer" }, text.tasks.noAnswer, share && h("small", {}, ` ${share}`)), h("p", { class: "marked", dir: "auto" }, context)];
  const parts = [letters.slice(0, begin).join(""), mark(letters.slice(begin, end).join(""), "", text.tasks.answer), letters.slice(end).join("")];
  return [h("p", { class: "answer", dir: "auto" }, answer, share && h("small", {}, ` ${share}`)), h("p", { class: "marked", dir: "auto" }, parts)];
}

function coreference({ sentences, clusters }) {
  const tokens = sentences.flat(), found = clusters.flatMap((cluster, n) => cluster.map(([first, last]) => [String(n + 1), first, last]));
  return [marked(tokens, found.sort((a, b) => a[1] - b[1] || b[2] - a[2])), found.length === 0 && h("p", { class: "note" }, text.tasks.nothing)];
}

function written(found) {
  return h("p", { class: "answer", dir: "auto" }, found.text ?? found.results?.[0]?.text ?? JSON.stringify(found));
}

/** What is shown of one result, by the kind of the task. */
export const SHOWN = { classify: classes, entail: classes, relate: classes, tag: tagged, roles, answer: answered, coref: coreference };

// Requests to the server that this page comes from. Knows: the routes. Blind to: the page.

import { floats } from "./vectors.js";

const TOKEN = "bilmo-token";

/** What went wrong. `kind` is the type that the server gave, or "unreachable". */
export class Problem extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

export function useToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

async function ask(path, body) {
  const token = sessionStorage.getItem(TOKEN), headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body) headers["Content-Type"] = "application/json";
  let answer, found;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Problem("unreachable", "");
  }
  try {
    found = await answer.json();
  } catch {
    throw new Problem("failed", `${answer.status} ${answer.statusText}`);
  }
  if (!answer.ok) throw new Problem(found.error?.type ?? "failed", found.error?.message ?? String(answer.status));
  return found;
}

export const info = () => ask("info");
export const fillIn = (model, tokens, position, n) => ask("fill", { model, tokens, position, n });
export const predict = (task, body) => ask(`predict/${encodeURIComponent(task)}`, body);

export async function similar(model, word, n) {
  return (await ask("similar", { model, words: [word], n })).results[0].similar;
}

/** The uses in the index that are nearest to a token of a sentence. */
export async function nearestUses(model, tokens, position, n) {
  return (await ask("similar", { model, tokens, position, n })).uses.map(spaced);
}

/** The uses of a word in the index, in groups. */
export async function senses(model, word, n) {
  const found = await ask("senses", { model, word, n });
  return { ...found, senses: found.senses.map((sense) => ({ ...sense, uses: sense.uses.map(spaced) })) };
}

/** A use with the text before each of its tokens. `text` is the sentence with the word in square brackets. */
function spaced(use) {
  let at = 0;
  const pieces = use.tokens.map((token, k) => {
    const piece = k > 0 && use.text[at] === " " ? " " : "";
    at += piece.length + token.length + (k === use.position ? 2 : 0);
    return piece;
  });
  return { ...use, pieces };
}

export async function characters(model, word) {
  return (await ask("words", { model, words: [word] })).results[0];
}

const known = new Map();

/** The sentences of each text, with the layers of each token. Texts that were asked before are not asked again. */
export async function embed(model, texts) {
  const key = (text) => `${model}\n${text}`, fresh = [...new Set(texts)].filter((text) => !known.has(key(text)));
  if (fresh.length) {
    const { results } = await ask("embed", { model, text: fresh, layers: true, encoding: "base64" });
    if (known.size > 2000) known.clear();
    results.forEach((result, i) => known.set(key(fresh[i]), sentences(fresh[i], result)));
  }
  const missing = texts.filter((text) => !known.has(key(text)));
  return missing.length ? embed(model, texts) : texts.map((text) => known.get(key(text)));
}

/** [{tokens, pieces, layers}]: `pieces` is the text before each token; `layers[k][j]` is layer j of token k. */
function sentences(text, { tokens, sentences, offsets, shape: [layers, , width], vectors }) {
  const letters = Array.from(text), values = floats(vectors), out = [];
  let first = 0;
  for (const count of sentences) {
    const numbers = Array.from({ length: count }, (_, i) => first + i);
    out.push({
      tokens: numbers.map((k) => tokens[k]),
      pieces: numbers.map((k) => letters.slice(k ? offsets[k - 1][1] : 0, offsets[k][0]).join("")),
      layers: numbers.map((k) =>
        Array.from({ length: layers }, (_, j) => values.subarray((j * tokens.length + k) * width, (j * tokens.length + k + 1) * width)),
      ),
    });
    first += count;
  }
  return out;
}

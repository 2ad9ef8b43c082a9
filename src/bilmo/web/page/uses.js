// All uses of words in some sentences, and how similar they are under a mix. Knows: arithmetic. Blind to: the page.

import { cosine, mean, minus, mixed, plane } from "./vectors.js";

const LEAST = 3; // uses of a word whose mean is worth taking out

const same = (a, b) => a.toLowerCase() === b.toLowerCase();

/**
 * Sentences under one mix. `background` are more sentences, which only make the means better.
 *
 * All vectors of a network have a large part in common, so plain cosines are all high. The mean over all tokens is
 * taken out first; between two uses of one word, the mean of the uses of this word, so that only its context counts.
 */
export class Uses {
  constructor(sentences, background, shares, gamma = 1) {
    this.sentences = sentences;
    this.vectors = sentences.map((one) => one.layers.map((layers) => mixed(layers, shares, gamma)));
    const others = background.filter((one) => !sentences.includes(one));
    this.all = [...sentences, ...others].flatMap((one, s) =>
      one.tokens.map((word, k) => ({ word, vector: this.vectors[s]?.[k] ?? mixed(one.layers[k], shares, gamma) })),
    );
    this.centre = this.all.length >= 20 ? mean(this.all.map((one) => one.vector)) : null;
    this.means = new Map();
  }

  /** The mean of the uses of a word, or null if there are few. */
  meanOf(word) {
    const key = word.toLowerCase();
    if (!this.means.has(key)) {
      const uses = this.all.filter((one) => same(one.word, word));
      this.means.set(key, uses.length >= LEAST ? mean(uses.map((one) => one.vector)) : null);
    }
    return this.means.get(key);
  }

  word([s, k]) {
    return this.sentences[s].tokens[k];
  }

  /** From -1 to 1. */
  similarity(one, other) {
    const word = this.word(one), alike = same(word, this.word(other));
    const centre = (alike && this.meanOf(word)) || this.centre, a = this.vectors[one[0]][one[1]], b = this.vectors[other[0]][other[1]];
    return centre ? cosine(minus(a, centre), minus(b, centre)) : cosine(a, b);
  }

  /** The similarity of every token to one: [[...], ...]. */
  shades(one) {
    return this.sentences.map(({ tokens }, s) => tokens.map((_, k) => this.similarity(one, [s, k])));
  }

  /** The places of a word, [[sentence, token], ...]. */
  places(word) {
    return this.sentences.flatMap(({ tokens }, s) => tokens.flatMap((token, k) => (same(token, word) ? [[s, k]] : [])));
  }

  /** Other tokens, the most similar first: other uses of the word, or other words if it is used only once. */
  nearest(one, most) {
    const uses = this.places(this.word(one)), repeated = uses.length > 1;
    const candidates = repeated ? uses : this.sentences.flatMap(({ tokens }, s) => tokens.map((_, k) => [s, k]));
    const found = candidates
      .filter(([s, k]) => s !== one[0] || k !== one[1])
      .map((place) => ({ place, value: this.similarity(one, place) }));
    return { repeated, found: found.sort((a, b) => b.value - a.value).slice(0, most) };
  }

  /** The map of some places. */
  map(places) {
    return plane(places.map(([s, k]) => this.vectors[s][k]));
  }
}

/** Words that are used more than once, the most frequent first; words without letters are left out. */
export function repeated(sentences) {
  const counts = new Map();
  for (const token of sentences.flatMap((one) => one.tokens)) {
    const key = token.toLowerCase();
    if (/\p{L}/u.test(token)) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > 1).sort((a, b) => b[1] - a[1]);
}

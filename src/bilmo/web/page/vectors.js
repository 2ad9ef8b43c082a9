// Arithmetic on layers: mixes, cosines and a map in two dimensions. Knows: arrays. Blind to: the page, the server.

/** Little-endian float32 numbers in base64. */
export function floats(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const view = new DataView(bytes.buffer), values = new Float32Array(bytes.length / 4);
  for (let i = 0; i < values.length; i++) values[i] = view.getFloat32(4 * i, true);
  return values;
}

/** The shares s of the layers: the softmax of their weights w. */
export function softmax(weights) {
  const most = Math.max(...weights), powers = weights.map((w) => Math.exp(w - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / sum);
}

/** gamma * sum_j s_j h_j. `layers` is a list of vectors, one per layer. */
export function mixed(layers, shares, gamma = 1) {
  const out = new Float32Array(layers[0].length);
  layers.forEach((layer, j) => {
    const share = gamma * shares[j];
    for (let i = 0; i < out.length; i++) out[i] += share * layer[i];
  });
  return out;
}

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

export function cosine(a, b) {
  const lengths = Math.sqrt(dot(a, a) * dot(b, b));
  return lengths > 1e-12 ? dot(a, b) / lengths : 0;
}

export function mean(vectors) {
  const out = new Float32Array(vectors[0].length);
  for (const vector of vectors) for (let i = 0; i < out.length; i++) out[i] += vector[i] / vectors.length;
  return out;
}

export function minus(a, b) {
  return a.map((value, i) => value - b[i]);
}

/**
 * The two directions in which the vectors differ most (PCA): [[x, y], ...].
 *
 * The eigenvectors of the matrix of dot products (n, n) give the coordinates, because n is smaller than the width.
 */
export function plane(vectors) {
  if (vectors.length === 0) return [];
  const centre = mean(vectors), rows = vectors.map((vector) => minus(vector, centre));
  let gram = rows.map((a) => rows.map((b) => dot(a, b)));
  const axes = [0, 1].map(() => {
    const [value, axis] = leading(gram);
    gram = gram.map((row, i) => row.map((cell, j) => cell - value * axis[i] * axis[j]));
    return axis.map((x) => x * Math.sqrt(Math.max(value, 0)));
  });
  return rows.map((_, i) => [axes[0][i], axes[1][i]]);
}

/** The largest eigenvalue of a symmetric matrix without negative eigenvalues, and its eigenvector of length 1. */
function leading(matrix) {
  const size = matrix.length;
  let axis = matrix.map((_, i) => 1 + Math.sin(7 * i + 1) / 2), value = 0; // any start that is not special
  for (let round = 0; round < 500; round++) {
    const next = matrix.map((row) => dot(row, axis)), length = Math.hypot(...next);
    if (length < 1e-12) return [0, new Array(size).fill(0)];
    const change = Math.abs(length - value);
    value = length;
    axis = next.map((x) => x / length);
    if (round > 8 && change < 1e-10 * value) break;
  }
  return [value, axis];
}

/** Turn and mirror a map so that it lies as close as possible on an earlier map of the same points. */
export function aligned(points, before) {
  if (!before || before.length !== points.length) return points;
  let same = [0, 0], mirrored = [0, 0];
  points.forEach(([x, y], i) => {
    const [u, v] = before[i];
    same = [same[0] + x * u + y * v, same[1] + x * v - y * u];
    mirrored = [mirrored[0] + x * u - y * v, mirrored[1] + x * v + y * u];
  });
  const flip = Math.hypot(...mirrored) > Math.hypot(...same) ? -1 : 1;
  const [c, s] = flip < 0 ? mirrored : same, length = Math.hypot(c, s) || 1;
  return points.map(([x, y]) => [(c * x - flip * s * y) / length, (s * x + flip * c * y) / length]);
}

/** The largest distance of a point from the centre, along x or y. */
export function extent(points) {
  return Math.max(0, ...points.flat().map(Math.abs));
}

// Where a function on a grid crosses zero.

/** Values of an n × n grid on a finer one, in between by bilinear interpolation. */
export function upsampled(values, n, fine) {
  if (n === fine) return values;
  const found = [];
  for (let row = 0; row < fine; row += 1) {
    for (let column = 0; column < fine; column += 1) {
      const [v, u] = [(row / (fine - 1)) * (n - 1), (column / (fine - 1)) * (n - 1)];
      const [i, j] = [Math.min(n - 2, Math.floor(v)), Math.min(n - 2, Math.floor(u))];
      const [a, b] = [v - i, u - j];
      found.push(
        (1 - a) * ((1 - b) * values[i * n + j] + b * values[i * n + j + 1])
        + a * ((1 - b) * values[(i + 1) * n + j] + b * values[(i + 1) * n + j + 1]),
      );
    }
  }
  return found;
}

/** Line pieces `[x, y, x, y]` in grid units along which the values are zero. */
export function boundary(values, n) {
  const pieces = [];
  const positive = (value) => value > 0;
  for (let i = 0; i < n - 1; i += 1) {
    for (let j = 0; j < n - 1; j += 1) {
      const corners = [[j, i], [j + 1, i], [j + 1, i + 1], [j, i + 1]].map(([x, y]) => ({ x, y, v: values[y * n + x] }));
      const crossed = [];
      corners.forEach((a, k) => {
        const b = corners[(k + 1) % 4];
        if (positive(a.v) === positive(b.v)) return;
        const share = a.v / (a.v - b.v || 1);
        crossed.push([a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share]);
      });
      for (let k = 0; k + 1 < crossed.length; k += 2) pieces.push([...crossed[k], ...crossed[k + 1]]);
    }
  }
  return pieces;
}

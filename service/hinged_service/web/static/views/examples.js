// Textbook data sets, and a model for each.

const truth = (rule) => [[0, 0], [0, 1], [1, 0], [1, 1]].map(([a, b]) => ({ x: { a, b }, y: rule(a, b) }));

const SIX = [
  [[1, 1, 0, 1, 1], true],
  [[0, 0, 1, 1, 0], false],
  [[0, 1, 1, 0, 0], true],
  [[1, 0, 0, 1, 0], false],
  [[1, 0, 1, 0, 1], true],
  [[1, 0, 1, 1, 0], false],
].map(([row, y]) => ({ x: Object.fromEntries(row.map((value, i) => [`x${i}`, value])), y }));

const xor = truth((a, b) => a !== b);

export const EXAMPLES = [
  {
    key: "and",
    title: "AND",
    about: "True only if both are. One line separates the corners, so the perceptron finds one: after eight passes it makes no mistake any more.",
    spec: { learner: { type: "perceptron" } },
    events: truth((a, b) => a === 1 && b === 1),
  },
  {
    key: "six-rows",
    title: "Six rows",
    about: "Five features, six rows, half steps and no intercept. After one pass four updates have made the weights 0, 1, 0, −0.5 and 0.5.",
    spec: { learner: { type: "perceptron", learning_rate: 0.5, fit_intercept: false } },
    events: SIX,
    plane: ["x1", "x3"],
  },
  {
    key: "xor",
    title: "XOR",
    about: "True if exactly one is. No line separates these corners: the perceptron keeps making mistakes, and its line never settles.",
    spec: { learner: { type: "perceptron" } },
    events: xor,
  },
  {
    key: "xor-product",
    title: "XOR with the product",
    about: "The same, but the pipeline adds the product a·b as a third feature. In three dimensions a plane separates the corners; on the page it is a curve.",
    spec: {
      pipeline: [{ type: "PolynomialExtender", degree: 2, interaction_only: true }],
      learner: { type: "perceptron" },
    },
    events: xor,
  },
];

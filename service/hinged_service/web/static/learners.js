// Which learner for what: the order in which they are offered, and a word of advice for each.

const GROUPS = [
  ["Recommended", {
    auto: "needs no tuning; start here",
  }],
  ["Two labels", {
    passive_aggressive: "few settings, learns fast",
    arow: "sparse features and noisy labels, such as text",
    scw: "like arow, more cautious",
    logistic_sgd: "probabilities",
    coin_betting: "probabilities without a rate to choose",
    ftrl_proximal: "many useless features",
    hinge_sgd: "the linear SVM",
    perceptron: "the classic, with mistake bounds",
    averaged_perceptron: "the perceptron, steadier",
    pocket_perceptron: "the perceptron, keeps its best weights",
    linear_unit: "the delta rule, for lectures",
    hedge: "a pool of the rules above",
    quadratic: "labels of middle or of extreme values",
    curved: "labels that no line separates",
  }],
  ["More labels", {
    multiclass_arow: "sparse features and noisy labels",
    multiclass_passive_aggressive: "few settings, learns fast",
    multiclass_averaged_perceptron: "steady",
    multiclass_perceptron: "the classic",
    multiclass_pocket_perceptron: "keeps its best weights",
    multiclass_logistic_sgd: "probabilities; takes longer with many labels",
    multiclass_discriminant: "right with few events: the nearest mean",
    multiclass_hedge: "a pool of the rules above",
    multiclass_quadratic: "labels of middle or of extreme values",
    one_vs_rest: "any rule of two labels, one for each label",
  }],
  ["River", {
    HoeffdingTreeClassifier: "a decision tree",
    LogisticRegression: "with River's optimizers",
    SoftmaxRegression: "more labels",
    PAClassifier: "passive-aggressive",
    ALMAClassifier: "large margin",
    GaussianNB: "naive Bayes of numbers",
    MultinomialNB: "naive Bayes of counts",
    ComplementNB: "naive Bayes of counts, labels of unequal number",
    BernoulliNB: "naive Bayes of flags",
    BaggingClassifier: "an ensemble of one of these",
    OneVsRestClassifier: "more labels from two",
    OneVsOneClassifier: "more labels, a learner for each pair",
  }],
];

/** Kinds in the order to offer: `[group, [[kind, text], …]]`; unknown ones come last. */
export function offered(kinds) {
  const known = new Set(GROUPS.flatMap(([, advice]) => Object.keys(advice)));
  if (!kinds.some((kind) => known.has(kind))) return [["", kinds.map((kind) => [kind, kind])]];
  const groups = GROUPS.map(([title, advice]) => [title, Object.entries(advice).filter(([kind]) => kinds.includes(kind)).map(([kind, text]) => [kind, `${kind}: ${text}`])]);
  const others = kinds.filter((kind) => !known.has(kind)).map((kind) => [kind, kind]);
  return [...groups, ["Other", others]].filter(([, list]) => list.length > 0);
}

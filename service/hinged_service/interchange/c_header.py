"""A linear model as a C header: constants, and functions without state or allocation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hinged_service.interchange.linear import LinearModel
from hinged_service.model.predictor import label_text

__all__ = ["as_c"]

_FAR = 700.0

_TEXT = """\
/* The model %(comment)s, exported by hinged. C99.
 *
 * x has the %(N)s_FEATURES features in the order of %(n)s_names; NAN is a feature that is absent.
 * %(n)s_label gives an index of %(n)s_labels.
 */
#ifndef HINGED_%(N)s_H
#define HINGED_%(N)s_H

#include <math.h>

#define %(N)s_FEATURES %(features)d
#define %(N)s_LABELS %(labels)d
#define %(N)s_SCORES %(scores)d
#define %(N)s_STAGES %(stages)d

static const char *const %(n)s_names[] = {%(names)s};
static const char *const %(n)s_labels[] = {%(label_texts)s};
static const double %(n)s_intercepts[] = {%(intercepts)s};
static const double %(n)s_weights[] = {%(weights)s};
/* For each stage and feature: centre, divisor, least, most. */
static const double %(n)s_scaling[] = {%(scaling)s};

/* The score of each label; of two labels, the score of the second. */
static inline void %(n)s_scores(const double *x, double *scores)
{
    for (int k = 0; k < %(N)s_SCORES; k++)
        scores[k] = %(n)s_intercepts[k];
    for (int i = 0; i < %(N)s_FEATURES; i++) {
        double value = x[i];
        if (isnan(value))
            continue;
        for (int s = 0; s < %(N)s_STAGES; s++) {
            const double *by = %(n)s_scaling + 4 * (s * %(N)s_FEATURES + i);
            value = fmin(fmax((value - by[0]) / by[1], by[2]), by[3]);
        }
        for (int k = 0; k < %(N)s_SCORES; k++)
            scores[k] += %(n)s_weights[k * %(N)s_FEATURES + i] * value;
    }
}

static inline int %(n)s_label(const double *x)
{
    double scores[%(N)s_SCORES];
    %(n)s_scores(x, scores);
%(label)s
}

/* The probability of each label. */
static inline void %(n)s_probabilities(const double *x, double *probabilities)
{
    double scores[%(N)s_SCORES];
    %(n)s_scores(x, scores);
%(proba)s
}

#endif
"""
_BINARY_LABEL = "    return scores[0] %(sign)s 0.0;"
_BINARY_PROBA = """\
    double odds = fmin(fmax(%(factor)r * scores[0], -%(limit)r), %(limit)r);
    probabilities[0] = 1.0 / (1.0 + exp(odds));
    probabilities[1] = 1.0 / (1.0 + exp(-odds));"""
_BEST_LABEL = """\
    int best = 0;
    for (int k = 1; k < %(N)s_SCORES; k++)
        if (scores[k] > scores[best])
            best = k;
    return best;"""
_BEST_PROBA = """\
    double top = scores[0], total = 0.0;
    for (int k = 1; k < %(N)s_SCORES; k++)
        top = fmax(top, scores[k]);
    for (int k = 0; k < %(N)s_SCORES; k++)
        total += probabilities[k] = exp(fmax(%(factor)r * (scores[k] - top), -%(limit)r));
    for (int k = 0; k < %(N)s_SCORES; k++)
        probabilities[k] /= total;"""


def as_c(model: LinearModel) -> str:
    """Return the header; its names begin with that of the model, other characters as `_`."""
    stem = re.sub(r"\W", "_", model.name, flags=re.ASCII)
    stem = f"m{stem}" if stem[0].isdigit() else stem
    factor, limit = model.temperature or (1.0, _FAR)
    label, proba = (
        (_BEST_LABEL, _BEST_PROBA) if model.multiclass else (_BINARY_LABEL, _BINARY_PROBA)
    )
    words = {
        "n": stem.lower(),
        "N": stem.upper(),
        "sign": ">=" if model.label_at_zero else ">",
        "factor": factor,
        "limit": limit,
    }
    return _TEXT % {
        **words,
        "comment": model.name.replace("*/", "* /"),
        "features": len(model.names),
        "labels": len(model.labels),
        "scores": len(model.intercepts),
        "stages": len(model.stages),
        "names": _lines(map(_text, model.names), '""'),
        "label_texts": _lines(_text(label_text(one)) for one in model.labels),
        "intercepts": _lines(map(repr, model.intercepts)),
        "weights": _lines(repr(w) for row in model.weights for w in row),
        "scaling": _lines(repr(n) for stage in model.stages for one in stage for n in one),
        "label": label % words,
        "proba": proba % words,
    }


def _lines(parts: Iterable[str], empty: str = "0.0") -> str:
    """Return an initializer; an empty one has one element, as C asks for."""
    found: Sequence[str] = list(parts) or [empty]
    return "\n    " + ",\n    ".join(found) + "\n"


def _text(text: str) -> str:
    """Return a string of C; bytes that are not plain are octal numbers of three digits."""
    plain = (
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()
    )
    return f'"{"".join(plain)}"'

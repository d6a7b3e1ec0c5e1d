# Means: the classes of a learner by the mean of each feature, over a spread that they share.

def mean_scores(dict parts, x):
    """Return how near an event of finite numbers is to the means of each class."""
    cdef Event *event = gathered(x)
    cdef Scored found = Scored()
    try:
        found._begin(parts, 1)
        score_by_means(parts, event, found.raw)
        return found._dict()
    finally:
        released(event)


cdef int score_by_means(dict parts, Event *event, double *scores) except -1:
    cdef ClassWeights part
    cdef double score, mean, seen = 1.0
    cdef double *precision = event.results
    cdef Py_ssize_t i, at = 0
    for i in range(event.count):
        precision[i] = 1.0
    for part in parts.values():
        seen += part.intercept
        part.auxiliary._find(event)
        for i in range(event.count):
            precision[i] += part.auxiliary._value(i)
    for i in range(event.count):
        precision[i] = seen / precision[i] if precision[i] > 0.0 else 0.0
    for part in parts.values():
        score, seen = 0.0, part.intercept + 1.0
        part.weights._find(event)
        for i in range(event.count):
            mean = part.weights._value(i) / seen
            score += mean * (event.values[i] - 0.5 * mean) * precision[i]
        scores[at] = score
        at += 1
    return 0


def add_to_means(ClassWeights part, x, double w):
    """Count an event of weight `w` to its class, unless a number would not be finite."""
    cdef Event *event = gathered(x)
    try:
        return means_moved(part, event, w)
    finally:
        released(event)


cdef bint means_moved(ClassWeights part, Event *event, double w) except -1:
    cdef double before = part.intercept + 1.0, after = before + w, old, new, value
    cdef Py_ssize_t i
    find_all(event, part.weights, part.auxiliary)
    for i in range(event.count):
        value, old = event.values[i], part.weights._value(i)
        new = old + w * value
        event.results[i] = new
        event.results[event.room + i] = part.auxiliary._value(i) + w * (value - old / before) * (
            value - new / after
        )
    if not (isfinite(after) and results_finite(event, 2)):
        return False
    part.weights._set(event, 0)
    part.auxiliary._set(event, 1)
    part.intercept += w
    return True

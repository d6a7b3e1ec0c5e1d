# Classes: the weights of each class of a learner, and an ordinary event of a learner in one call.

cdef class ClassWeights:
    """The linear function of one class, and what its rule keeps beside it."""

    cdef public Storage weights, auxiliary
    cdef public double intercept, auxiliary_intercept

    def __reduce__(self):
        return pure.revived_class, (
            self.weights, self.auxiliary, self.intercept, self.auxiliary_intercept
        )


def class_scores(dict parts, x, bint auxiliary=False):
    """Return `w . x + b` by class, of the second vectors if `auxiliary`."""
    cdef Event *event = gathered(x)
    try:
        return scored_classes(parts, event, x, auxiliary)
    finally:
        released(event)


cdef dict scored_classes(dict parts, Event *event, x, bint auxiliary):
    cdef ClassWeights part
    cdef dict scores = {}
    for label, part in parts.items():
        scores[label] = class_score(part, event, x, auxiliary)
    return scores


def averaged_scores(dict parts, x, double events, dict raw=None):
    """Return by class `w . x + b`, or its part of `raw`, less its lag."""
    cdef Event *event = gathered(x)
    try:
        return averaged_classes(parts, event, x, events, raw)
    finally:
        released(event)


cdef dict averaged_classes(dict parts, Event *event, x, double events, dict raw):
    cdef ClassWeights part
    cdef dict scores = {}
    cdef double score
    for label, part in parts.items():
        score = class_score(part, event, x, False) if raw is None else raw[label]
        scores[label] = score - class_score(part, event, x, True) / events
    return scores


cdef double class_score(ClassWeights part, Event *event, x, bint auxiliary) except? -1.0:
    cdef Storage vector = part.auxiliary if auxiliary else part.weights
    cdef double score
    join(part.weights, part.auxiliary)
    score = vector._dot(event) if vector.plain else vector.dot(x)
    return score + (part.auxiliary_intercept if auxiliary else part.intercept)


cpdef bint finite_scores(dict scores) except -1:
    """Return whether all values are finite."""
    for score in scores.values():
        if not isfinite(<double>score):
            return False
    return True


cdef enum:  # as in `pure.CLASS_RULES`
    PERCEPTRON_CLASSES = 1
    AGGRESSIVE_CLASSES
    AROW_CLASSES
    LOGISTIC_CLASSES
    AVERAGED_CLASSES
    CLASS_MEANS
    SQUARED_FEATURES


cdef bint are_plain(dict parts) except -1:
    """Return whether there are classes, all of them with weights that start from 0."""
    cdef ClassWeights part
    for part in parts.values():
        if not (part.weights.plain and part.auxiliary.plain):
            return False
    return len(parts) > 0


cdef dict raw_scores(int rule, dict parts, Event *event):
    """Return the scores of the weights that learn, `None` if not all are finite."""
    cdef dict scores
    if rule == CLASS_MEANS:
        scores = scored_by_means(parts, event)
    else:
        scores = scored_classes(parts, event, None, False)
    return scores if finite_scores(scores) else None


cdef dict served_from(int rule, learner, Event *event, dict raw):
    """Return the scores that predict, `None` if not all are finite."""
    cdef dict scores
    if rule != AVERAGED_CLASSES:
        return raw
    scores = averaged_classes(learner._parts, event, None, max(learner.clock, 1), raw)
    return scores if finite_scores(scores) else None


cdef dict served_at_once(learner, Event *event, x):
    """Return the finite scores of a learner that says how it scores, else `None`."""
    cdef int rule = learner._rule
    cdef Event *squares
    cdef dict raw
    if not rule:
        return None
    if rule == SQUARED_FEATURES:
        squares = gathered_squares(event, x)
        try:
            return served_at_once(learner.lifted, squares, None)
        finally:
            released(squares)
    raw = raw_scores(rule, learner._parts, event) if are_plain(learner._parts) else None
    return None if raw is None else served_from(rule, learner, event, raw)


def scores_at_once(learner, x):
    """Return the scores of an ordinary event, `None` if they are not known at once."""
    cdef Event *event
    try:
        event = gathered(x)
    except TypeError:
        return None
    try:
        return served_at_once(learner, event, x)
    finally:
        released(event)


def served_scores(list experts, x):
    """Return the finite scores of each learner by class."""
    cdef Event *event
    cdef dict scores
    cdef list found = []
    try:
        event = gathered(x)
    except TypeError:
        return pure.served_scores(experts, x)
    try:
        for expert in experts:
            scores = served_at_once(expert, event, x)
            found.append(expert.scores_one(x) if scores is None else scores)
        return found
    finally:
        released(event)


def learn_class(learner, x, y, w):
    """Let a learner of known scores learn an ordinary event, or change nothing: return `None`."""
    cdef Event *event
    if not (PyDict_CheckExact(x) or type(x) is ReadFeatures):
        return None
    try:
        event = gathered(x)
    except TypeError:
        return None
    try:
        return learned_class(learner, event, x, y, w, False)
    finally:
        released(event)


cdef tuple learned_class(learner, Event *event, x, y, w, bint squared):
    """Learn an event gathered of `x`, or of its squares if `squared`; or return `None`."""
    cdef int rule = learner._rule
    cdef Event *squares
    cdef Accounting account
    cdef ClassWeights part, rival_part
    cdef dict raw, served
    cdef object own = None, rival = None, y_pred, numbers
    cdef double own_score = 0.0, top = 0.0, distance = 0.0, loss = 0.0, size
    cdef bint updated = False
    if not (
        rule
        and type(w) is float
        and 0.0 < <double>w < INFINITY
        and (type(y) is str or type(y) is int or type(y) is bool)
    ):
        return None
    if rule == AGGRESSIVE_CLASSES and w != 1.0 and learner.mode == "uncapped":
        return None
    if rule == SQUARED_FEATURES:
        squares = gathered_squares(event, x)
        try:
            return learned_class(learner.lifted, squares, x, y, w, True)
        finally:
            released(squares)
    if not are_plain(learner._parts):
        return None
    raw = raw_scores(rule, learner._parts, event)
    served = None if raw is None else served_from(rule, learner, event, raw)
    size = norm_once(event)
    if served is None or not size < INFINITY:
        return None
    for label, score in raw.items():
        if own is None and type(label) is type(y) and label == y:
            own, own_score = label, score
        elif rival is None or <double>score > top:
            rival, top = label, score
    if own is None:
        return None
    if rival is not None:
        distance = own_score - top
    if not isfinite(distance):
        return None
    y_pred = best(served)
    account = learner.accounting
    account.events += 1
    learner.clock += 1
    if y_pred is not own:
        account.mistakes += 1
    account._add_norm(size, learner._constant)
    if distance < 1.0:
        loss = 1.0 - distance
        account._add_margin(distance)
    if not distance > <double>learner._update_margin and (
        rival is not None or not learner._needs_rival
    ):
        part = learner._parts[own]
        rival_part = part if rival is None else learner._parts[rival]
        updated = moved_classes(rule, learner, event, raw, part, rival_part, distance, size, w)
        if not updated:
            numbers = with_squares(x) if squared else x
            event.of = <PyObject *>numbers
            try:
                updated = learner._learn_classes(numbers, own, rival, distance, size, w)
            finally:
                event.of = NULL
        account.updates += updated
    return y_pred, served[y_pred], y_pred is not own, updated, loss


def teach_classes(list experts, x, y, w, Accounting account):
    """Let each learner learn the class of an event; return whether any moved."""
    cdef Event *event
    cdef Accounting own
    cdef object told
    cdef bint moved = False
    try:
        event = gathered(x)
    except TypeError:
        return pure.teach_classes(experts, x, y, w, account)
    try:
        for expert in experts:
            own = expert.accounting
            overflows, ignored = own.overflows, own.ignored
            told = learned_class(expert, event, x, y, w, False)
            if told is None:
                told = expert.predict_learn_one(x, y, w)
            moved = moved or told[3]
            account.overflows += own.overflows - overflows
            account.ignored += own.ignored - ignored
        return moved
    finally:
        released(event)


def add_to_classes(list parts, list slopes, x, double rate, double constant):
    """Take AdaGrad's step by a slope of each class, or none if a number would not be finite."""
    cdef Event *event
    cdef ClassWeights part
    if len(slopes) != len(parts):
        raise ValueError("a slope for each class")
    for part in parts:
        if not part.weights.plain:
            return pure.add_to_classes(parts, slopes, x, rate, constant)
    event = gathered(x)
    try:
        return moved_by_slopes(parts, slopes, event, rate, constant)
    finally:
        released(event)


cdef bint moved_by_slopes(
    list parts, list slopes, Event *event, double rate, double constant
) except -1:
    cdef ClassWeights part
    cdef double slope, intercept, square
    cdef Py_ssize_t i
    cdef bint last
    for last in range(2):  # all are looked at before one changes
        for i in range(len(parts)):
            part, slope = parts[i], slopes[i]
            intercept, square = part.intercept, part.auxiliary_intercept
            logistic_step(rate, -1.0, slope * constant, &intercept, &square)
            logistic_results(part.weights, part.auxiliary, event, slope, rate, -1.0)
            if last:
                part.weights._set(event, 0)
                join(part.weights, part.auxiliary)
                part.auxiliary._set(event, 1)
                part.intercept, part.auxiliary_intercept = intercept, square
            elif not (isfinite(intercept) and isfinite(square) and results_finite(event, 2)):
                return False
    return True

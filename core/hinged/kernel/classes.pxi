# Classes: the weights of each class of a learner, and an ordinary event of a learner in one call.

cdef class ClassWeights:
    """The linear function of one class, and the other numbers of its rule."""

    cdef public Storage weights, auxiliary
    cdef public double intercept, auxiliary_intercept

    def __reduce__(self):
        return pure.revived_class, (
            self.weights, self.auxiliary, self.intercept, self.auxiliary_intercept
        )


def class_scores(dict parts, x, bint auxiliary=False):
    """Return `w . x + b` by class, of the second vectors if `auxiliary`."""
    cdef Event *event = gathered(x)
    cdef ClassWeights part
    cdef dict scores = {}
    try:
        for label, part in parts.items():
            scores[label] = class_score(part, event, x, auxiliary)
        return scores
    finally:
        released(event)


def averaged_scores(dict parts, x, double events, dict raw=None):
    """Return by class `w . x + b`, or its part of `raw`, less its lag."""
    cdef Event *event = gathered(x)
    cdef ClassWeights part
    cdef dict scores = {}
    cdef double score
    try:
        for label, part in parts.items():
            score = class_score(part, event, x, False) if raw is None else raw[label]
            scores[label] = score - class_score(part, event, x, True) / events
        return scores
    finally:
        released(event)


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
    CLASS_POOL


@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Scored:
    """The finite scores of a learner for an event, in the order of its classes."""

    cdef double *raw  # of the weights that learn
    cdef double *served  # which may be the same ones
    cdef double *shares  # of a pool: those of each expert, and last its own
    cdef dict parts
    cdef list experts  # of a pool: the scores of each
    cdef Py_ssize_t count

    def __dealloc__(self):
        PyMem_Free(self.raw)

    cdef int _begin(self, dict parts, Py_ssize_t rows) except -1:
        """Make room for so many scores of each class."""
        self.parts, self.count = parts, len(parts)
        self.raw = self.served = <double *>wider(NULL, rows * self.count * sizeof(double))
        return 0

    cdef bint _is_finite(self) noexcept:
        cdef Py_ssize_t i
        for i in range(self.count):
            if not (isfinite(self.raw[i]) and isfinite(self.served[i])):
                return False
        return True

    cdef dict _dict(self):
        cdef Py_ssize_t i
        return {label: self.served[i] for i, label in enumerate(self.parts)}

    cdef Py_ssize_t _best(self) noexcept:
        """Return the number of the class that is predicted."""
        cdef Py_ssize_t i, found = 0
        for i in range(1, self.count):
            if self.served[i] > self.served[found]:
                found = i
        return found


cdef Scored scored(learner, Event *event, x):
    """Return the scores of a learner of a known rule, `None` if not all are finite."""
    cdef int rule = learner._rule
    cdef Event *squares
    cdef Scored found
    cdef ClassWeights part
    cdef double events
    cdef Py_ssize_t i = 0
    if rule == SQUARED_FEATURES:
        squares = gathered_squares(event, x)
        try:
            return scored(learner.lifted, squares, None)
        finally:
            released(squares)
    if rule == CLASS_POOL:
        return scored_pool(learner, event, x)
    if not rule:
        return None
    found = Scored()
    found._begin(learner._parts, 2)
    if not found.count:
        return None
    if rule == CLASS_MEANS:
        score_by_means(found.parts, event, found.raw)
    else:
        for part in found.parts.values():
            if not (part.weights.plain and part.auxiliary.plain):
                return None
            found.raw[i] = class_score(part, event, None, False)
            i += 1
    if rule == AVERAGED_CLASSES:
        events, i = max(learner.clock, 1), 0
        found.served = found.raw + found.count
        for part in found.parts.values():
            found.served[i] = found.raw[i] - class_score(part, event, None, True) / events
            i += 1
    return found if found._is_finite() else None


cdef Scored scored_at_once(learner, x):
    cdef Event *event
    try:
        event = gathered(x)
    except TypeError:
        return None
    try:
        return scored(learner, event, x)
    finally:
        released(event)


def scores_at_once(learner, x):
    """Return the scores of an ordinary event, `None` if they are not known at once."""
    cdef Scored found = scored_at_once(learner, x)
    return None if found is None else found._dict()


def class_at_once(learner, x):
    """Return the class of an ordinary event, `None` if it is not known at once."""
    cdef Scored found = scored_at_once(learner, x)
    cdef Py_ssize_t i, at
    if found is None:
        return None
    at = found._best()
    for i, label in enumerate(found.parts):
        if i == at:
            return label


def served_scores(list experts, x):
    """Return the finite scores of each learner by class."""
    cdef Event *event
    cdef Scored scores
    cdef list found = []
    try:
        event = gathered(x)
    except TypeError:
        return pure.served_scores(experts, x)
    try:
        for expert in experts:
            scores = scored(expert, event, x)
            found.append(expert.scores_one(x) if scores is None else scores._dict())
        return found
    finally:
        released(event)


def learn_class(learner, x, y, w):
    """Let a learner of known scores learn an ordinary event, or change nothing: return `None`."""
    cdef Event *event
    if not (PyDict_CheckExact(x) or isinstance(x, Features)):
        return None
    try:
        event = gathered(x)
    except TypeError:
        return None
    try:
        return learned_class(learner, event, x, y, w, False, None)
    finally:
        released(event)


cdef tuple learned_class(learner, Event *event, x, y, w, bint squared, Scored found):
    """Learn an event gathered of `x`, or of its squares if `squared`; or return `None`.

    `found` are its scores, if they are known.
    """
    cdef int rule = learner._rule
    cdef Event *squares
    cdef Accounting account
    cdef ClassWeights part, rival_part
    cdef object own = None, rival = None, y_pred = None, numbers
    cdef double own_score = 0.0, top = 0.0, distance = 0.0, loss = 0.0, size
    cdef Py_ssize_t i = 0, at, own_at = 0
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
            return learned_class(learner.lifted, squares, x, y, w, True, found)
        finally:
            released(squares)
    if found is None:
        found = scored(learner, event, x)
    size = norm_once(event)
    if found is None or not size < INFINITY:
        return None
    at = found._best()
    for label in found.parts:
        if i == at:
            y_pred = label
        if own is None and type(label) is type(y) and label == y:
            own, own_score, own_at = label, found.raw[i], i
        elif rival is None or found.raw[i] > top:
            rival, top = label, found.raw[i]
        i += 1
    if own is None:
        return None
    if rival is not None:
        distance = own_score - top
    if not isfinite(distance):
        return None
    if rule == CLASS_POOL and w != 1.0:
        learner.check_weight(w)
    account = learner.accounting
    account.events += 1
    learner.clock += 1
    if y_pred is not own:
        account.mistakes += 1
    account._add_norm(size, learner._constant)
    if distance < 1.0:
        loss = 1.0 - distance
        account._add_margin(distance)
    if rule == CLASS_POOL:
        updated = pool_learned(learner, event, x, own, own_at, w, found)
        account.updates += updated
    elif not distance > <double>learner._update_margin and (
        rival is not None or not learner._needs_rival
    ):
        part = learner._parts[own]
        rival_part = part if rival is None else learner._parts[rival]
        updated = moved_classes(rule, learner, event, found, part, rival_part, distance, size, w)
        if not updated:
            numbers = with_squares(x) if squared else x
            event.of = <PyObject *>numbers
            try:
                updated = learner._learn_classes(numbers, own, rival, distance, size, w)
            finally:
                event.of = NULL
        account.updates += updated
    return y_pred, found.served[at], y_pred is not own, updated, loss


def teach_classes(list experts, x, y, w, Accounting account):
    """Let each learner learn the class of an event; return whether any moved."""
    cdef Event *event
    try:
        event = gathered(x)
    except TypeError:
        return pure.teach_classes(experts, x, y, w, account)
    try:
        return taught_classes(experts, event, x, y, w, account, [None] * len(experts))
    finally:
        released(event)


cdef bint taught_classes(
    list experts, Event *event, x, y, w, Accounting account, list found
) except -1:
    """Do it, the scores of each learner being `found` if they are known."""
    cdef Accounting own
    cdef object outcome
    cdef bint moved = False
    for expert, scores in zip(experts, found):
        own = expert.accounting
        overflows, ignored = own.overflows, own.ignored
        outcome = learned_class(expert, event, x, y, w, False, scores)
        if outcome is None:
            outcome = expert.predict_learn_one(x, y, w)
        moved = moved or outcome[3]
        account.overflows += own.overflows - overflows
        account.ignored += own.ignored - ignored
    return moved


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

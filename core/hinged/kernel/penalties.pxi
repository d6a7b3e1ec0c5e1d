# Penalties: weights that are shrunk and pulled only when they are read.

def shrunk_dot(Storage weights, Storage marks, x, double log_shrink, list found):
    """Return `w . x` of weights that are shrunk since their marks, and append these to a list."""
    cdef Event *event = gathered(x)
    try:
        return handed(found, event, shrunk_results(weights, marks, event, log_shrink))
    finally:
        released(event)


cdef double handed(list found, Event *event, double total) except? -1.0:
    """Append the results, weights as they are now, to a list; return their product."""
    cdef Py_ssize_t i
    for i in range(event.count):
        found.append(event.results[i])
    return total


cdef double shrunk_results(
    Storage weights, Storage marks, Event *event, double log_shrink
) except? -1.0 nogil:
    """Return `w . x`; the weights as they are now become the results."""
    cdef double total = 0.0, weight, mark, factor = 1.0, last = log_shrink
    cdef Py_ssize_t i
    find_all(event, weights, marks)
    for i in range(event.count):
        weight = 0.0
        if weights.slots[i] >= 0:
            mark = marks.values[marks.slots[i]] if marks.slots[i] >= 0 else log_shrink
            if mark != last:  # names are often marked by the same event
                last, factor = mark, exp(log_shrink - mark)
            weight = weights.values[weights.slots[i]] * factor
        event.results[i] = weight
        total += weight * event.values[i]
    return total


cdef int take(Event *event, list before) except -1:
    """Take over weights that were handed out: they become the results."""
    cdef Py_ssize_t i
    if len(before) != event.count:
        raise ValueError("a weight for each name")
    for i in range(event.count):
        event.results[i] = before[i]
    return 0


def add_shrunk(tuple vectors, x, list before, double shrink, double step, double mark):
    """Set the weights to `shrink` times those before, plus `step x`, which fits; mark them."""
    cdef Event *event = gathered(x)
    try:
        take(event, before)
        open_all(event, vectors[0], vectors[1])
        move_shrunk(vectors[0], vectors[1], event, shrink, step, mark)
    finally:
        released(event)


cdef void move_shrunk(
    Storage weights, Storage marks, Event *event, double shrink, double step, double mark
) noexcept nogil:
    cdef Py_ssize_t i
    cdef double weight
    for i in range(event.count):
        weight = event.results[i]
        weights.values[weights.slots[i]] = shrink * weight + step * event.values[i]
        marks.values[marks.slots[i]] = mark


def pulled_dot(tuple vectors, x, double log_shrink, double pull, bint shrinks, list found):
    """Return `w . x` of weights that are shrunk and pulled since their marks, and append these."""
    cdef Event *event = gathered(x)
    cdef Storage weights = vectors[0], shrink_marks = vectors[1], pull_marks = vectors[2]
    cdef double total
    try:
        total = pulled_results(
            weights, shrink_marks, pull_marks, event, log_shrink, pull, shrinks
        )
        return handed(found, event, total)
    finally:
        released(event)


cdef double pulled_results(
    Storage weights,
    Storage shrink_marks,
    Storage pull_marks,
    Event *event,
    double log_shrink,
    double pull,
    bint shrinks,
) except? -1.0 nogil:
    """Return `w . x`; the weights as they are now become the results."""
    cdef double total = 0.0, weight, paid, due, factor = 1.0, last = 0.0
    cdef Py_ssize_t i
    if shrinks:
        find_all(event, weights, pull_marks, shrink_marks)
    else:
        find_all(event, weights, pull_marks)
    for i in range(event.count):
        weight = weights._value(i)
        if weight != 0.0:
            paid = pull_marks._value(i)
            if shrinks:
                due = log_shrink - shrink_marks._value(i)
                if due < 0.0:
                    if due != last:
                        last, factor = due, exp(due)
                    weight, paid = factor * weight, factor * paid
            weight = pulled(weight, pull - paid)
        event.results[i] = weight
        total += weight * event.values[i]
    return total


cdef inline double pulled(double weight, double pull) noexcept nogil:
    """Return a weight moved towards 0, never beyond."""
    return weight - pull if weight > pull else weight + pull if weight < -pull else 0.0


def add_pulled(Storage weights, x, list before, double shrink, double step, double pull):
    """Set the weights to `shrink` times those before, plus `step x`, which fits, then pulled."""
    cdef Event *event = gathered(x)
    try:
        take(event, before)
        weights._open(event)
        move_pulled(weights, event, shrink, step, pull)
    finally:
        released(event)


cdef void move_pulled(
    Storage weights, Event *event, double shrink, double step, double pull
) noexcept nogil:
    cdef double weight
    cdef Py_ssize_t i
    for i in range(event.count):
        weight = pulled(shrink * event.results[i] + step * event.values[i], pull)
        weights.values[weights.slots[i]] = weight


def set_mark(Storage marks, x, double mark):
    """Set the number of each name of an event to `mark`."""
    cdef Event *event
    if not PyDict_CheckExact(x):
        pure.set_mark(marks, x, mark)
        return
    event = gathered(x)
    try:
        marks._open(event)
        marked(marks, event, mark)
    finally:
        released(event)


cdef void marked(Storage marks, Event *event, double mark) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(event.count):
        marks.values[marks.slots[i]] = mark
    marks.bound = INFINITY


def adaptive_dot(tuple vectors, x, double clock, double rate, double l1, double l2, list found):
    """Return `w . x` of AdaGrad's weights, penalised since their marks, and append these."""
    cdef Event *event = gathered(x)
    cdef Storage weights = vectors[0], squares = vectors[1], marks = vectors[2]
    cdef double total
    try:
        total = adaptive_now(weights, squares, marks, event, clock, rate, l1, l2)
        return handed(found, event, total)
    finally:
        released(event)


cdef double adaptive_now(
    Storage weights,
    Storage squares,
    Storage marks,
    Event *event,
    double clock,
    double rate,
    double l1,
    double l2,
) except? -1.0 nogil:
    """Return `w . x`; the weights as they are now become the results."""
    cdef double total = 0.0, weight
    cdef Py_ssize_t i
    find_all(event, weights, squares, marks)
    for i in range(event.count):
        weight = penalised(
            weights._value(i), squares._value(i), clock - marks._value(i), rate, l1, l2
        )
        event.results[i] = weight
        total += weight * event.values[i]
    return total


cdef double penalised(
    double weight, double square, double events, double rate, double l1, double l2
) noexcept nogil:
    cdef double eta, shrink, factor, repeats, size
    if weight == 0.0 or square == 0.0:
        return weight
    if not events > 0.0:
        events = 0.0
    eta = rate / sqrt(square)
    shrink = 1.0 - eta * l2
    if not shrink > 0.0:
        shrink = 0.0
    if shrink == 1.0:
        factor, repeats = 1.0, events
    else:
        factor = pow(shrink, events)
        repeats = (1.0 - factor) / (1.0 - shrink)
    size = factor * fabs(weight) - eta * l1 * repeats
    return copysign(size if size > 0.0 else 0.0, weight)


def add_penalised(
    tuple vectors, x, list before, double rate, double target, double w, double l1, double l2
):
    """Take AdaGrad's penalised step on every weight, or none if a number would not be finite."""
    cdef Event *event = gathered(x)
    try:
        take(event, before)
        penalised_results(vectors[1], event, rate, target, w, l1, l2)
        return stored(event, vectors[0], vectors[1])
    finally:
        released(event)


cdef int penalised_results(
    Storage squares, Event *event, double rate, double target, double w, double l1, double l2
) except -1 nogil:
    """Make the results, weights before the step, those after it; their squares come next."""
    cdef double weight, square, gradient, eta, shrink
    cdef Py_ssize_t i
    squares._find(event)
    for i in range(event.count):
        weight = event.results[i]
        gradient = w * event.values[i]
        square = squares._value(i) + gradient * gradient
        if square > 0.0:
            eta = rate / sqrt(square)
            shrink = 1.0 - eta * l2
            weight = (shrink if shrink > 0.0 else 0.0) * weight
            weight = pulled(weight + eta * target * gradient, eta * l1)
        event.results[i] = weight
        event.results[event.room + i] = square
    return 0

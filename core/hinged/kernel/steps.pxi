# Steps: what a rule does to the vectors of an event.

def norm_of(x):
    """Return the Euclidean norm of an event."""
    cdef Event *event
    try:
        event = gathered(x)
    except TypeError:
        return pure.norm_of(x)
    cdef double found = norm_once(event)
    released(event)
    return found


def floats(x):
    """Return an event for the pure version: NumPy's numbers warn where they overflow."""
    return {name: float(value) for name, value in x.items()}


cdef inline double norm_once(Event *event) noexcept nogil:
    if not event.has_norm:
        event.norm = norm(event.values, event.count)
        event.has_norm = True
    return event.norm


cdef inline double pair_norm(double a, double b) noexcept nogil:
    cdef double[2] pair
    cdef double total = a * a + b * b
    if LEAST <= total < INFINITY:
        return sqrt(total)
    pair[0], pair[1] = a, b
    return norm(pair, 2)


def length(double a, double b):
    """Return the norm of two numbers."""
    return pair_norm(a, b)


def uncertainty(Storage variance, x):
    """Return `x . S x`, a variance never stored being 1."""
    cdef Event *event = gathered(x)
    try:
        return spread_of(variance, event)
    finally:
        released(event)


cdef double spread_of(Storage variance, Event *event) except? -1.0 nogil:
    cdef double total = 0.0, before
    cdef Py_ssize_t i
    variance._find(event)
    for i in range(event.count):
        before = variance.values[variance.slots[i]] if variance.slots[i] >= 0 else 1.0
        total += before * event.values[i] * event.values[i]
    return total


def add_by_confidence(
    Storage weights, Storage variance, x, double step, double beta, double forgetting
):
    """Add `step S x`, which must fit, and lower the variances."""
    cdef Event *event
    if not weights.plain:
        pure.add_by_confidence(weights, variance, floats(x), step, beta, forgetting)
        return
    event = gathered(x)
    try:
        move_by_confidence(weights, variance, event, step, beta, forgetting)
    finally:
        released(event)


cdef int move_by_confidence(
    Storage weights, Storage variance, Event *event, double step, double beta, double forgetting
) except -1 nogil:
    cdef double before, product, left
    cdef Py_ssize_t i
    for i in range(MOST_TRIES):
        join(weights, variance)
        variance._find(event)
        weights._open(event)
        if variance._has(event):
            break
    else:
        stop_looking_up()
    for i in range(event.count):
        before = variance.values[variance.slots[i]] if variance.slots[i] >= 0 else 1.0
        product = before * event.values[i]
        left = before - beta * product * product
        if not left > 0.0:
            left = 0.0
        if forgetting > 0.0:
            left = left / (1.0 - forgetting + forgetting * left)
        weights.values[weights.slots[i]] += step * product
        event.results[i] = left
    variance._open(event)
    for i in range(event.count):
        variance.values[variance.slots[i]] = event.results[i]
    return 0


cdef bint results_finite(Event *event, Py_ssize_t parts) noexcept nogil:
    cdef Py_ssize_t i, part
    for part in range(parts):
        for i in range(event.count):
            if not isfinite(event.results[part * event.room + i]):
                return False
    return True


cdef bint stored(
    Event *event, Storage a, Storage b, Storage c=None, Storage d=None, Storage e=None
) except -1 nogil:
    """Store the results, a part in each vector, if all are finite."""
    if not results_finite(event, 2 + (c is not None) + (d is not None) + (e is not None)):
        return False
    a._set(event, 0)
    join(a, b)
    b._set(event, 1)
    if c is not None:
        join(a, c)
        c._set(event, 2)
    if d is not None:
        join(a, d)
        d._set(event, 3)
    if e is not None:
        join(a, e)
        e._set(event, 4)
    return True


def add_adaptively(Storage weights, Storage squares, x, double rate, double target, double w):
    """Take AdaGrad's step on every weight of `x`, or none if a number would not be finite."""
    cdef Event *event
    if not weights.plain:
        return pure.add_adaptively(weights, squares, floats(x), rate, target, w)
    event = gathered(x)
    try:
        adaptive_results(weights, squares, event, rate, target, w)
        return stored(event, weights, squares)
    finally:
        released(event)


cdef int adaptive_results(
    Storage weights, Storage squares, Event *event, double rate, double target, double w
) except -1 nogil:
    cdef double gradient, square, weight
    cdef Py_ssize_t i
    find_all(event, weights, squares)
    for i in range(event.count):
        gradient = w * event.values[i]
        square = squares._value(i) + gradient * gradient
        weight = weights._value(i)
        if square > 0.0:
            weight += rate / sqrt(square) * target * gradient
        event.results[i] = weight
        event.results[event.room + i] = square
    return 0


def add_logistic(Storage weights, Storage squares, x, double slope, double rate, decay):
    """Take a step of `LogisticSGD` on every weight, or none if a number would not be finite."""
    cdef Event *event
    if not weights.plain:
        return pure.add_logistic(weights, squares, floats(x), slope, rate, decay)
    event = gathered(x)
    try:
        logistic_results(weights, squares, event, slope, rate, -1.0 if decay is None else decay)
        return stored(event, weights, squares)
    finally:
        released(event)


cdef inline void logistic_step(
    double rate, double decay, double gradient, double *weight, double *square
) noexcept nogil:
    """Change a weight and its squares by one gradient; a `decay` below 0 is AdaGrad."""
    if gradient == 0.0:
        return
    if decay < 0.0:
        square[0] += gradient * gradient
    else:
        square[0] = decay * square[0] + (1.0 - decay) * (gradient * gradient)
    weight[0] = weight[0] - rate / sqrt(square[0] + EPSILON) * gradient


cdef int logistic_results(
    Storage weights, Storage squares, Event *event, double slope, double rate, double decay
) except -1 nogil:
    cdef double *new = event.results
    cdef Py_ssize_t i, room = event.room
    find_all(event, weights, squares)
    for i in range(event.count):
        new[i], new[room + i] = weights._value(i), squares._value(i)
        logistic_step(rate, decay, slope * event.values[i], &new[i], &new[room + i])
    return 0


def add_proximally(tuple vectors, x, double slope, start_of, tuple parameters):
    """Take a step of `FTRLProximal` on every weight, or none if a number would not be finite."""
    cdef Event *event
    cdef Proximal proximal
    cdef Storage weights, sums, squares
    if start_of is not None:
        return pure.add_proximally(vectors, floats(x), slope, start_of, parameters)
    proximal.rate, proximal.beta, proximal.l1, proximal.l2 = parameters
    weights, sums, squares = vectors
    event = gathered(x)
    try:
        proximal_results(weights, sums, squares, event, slope, &proximal)
        return stored(event, weights, sums, squares)
    finally:
        released(event)


cdef struct Proximal:
    double rate, beta, l1, l2


cdef int proximal_results(
    Storage weights,
    Storage sums,
    Storage squares,
    Event *event,
    double slope,
    const Proximal *proximal,
) except -1 nogil:
    cdef double *new = event.results
    cdef Py_ssize_t i, room = event.room
    find_all(event, weights, sums, squares)
    for i in range(event.count):
        new[i] = weights._value(i)
        new[room + i] = sums._value(i)
        new[2 * room + i] = squares._value(i)
        proximal_step(
            slope * event.values[i], 0.0, proximal, &new[i], &new[room + i], &new[2 * room + i]
        )
    return 0


cdef inline void proximal_step(
    double gradient,
    double start,
    const Proximal *proximal,
    double *weight,
    double *total,
    double *square,
) noexcept nogil:
    cdef double root, grown, divisor, moved = 0.0
    if gradient == 0.0:
        return
    root = sqrt(square[0])
    square[0] += gradient * gradient
    grown = sqrt(square[0])
    total[0] += gradient - (grown - root) / proximal.rate * (weight[0] - start)
    if fabs(total[0]) <= proximal.l1:
        weight[0] = start
        return
    divisor = (proximal.beta + grown) / proximal.rate + proximal.l2
    if divisor > 0.0:
        moved = (copysign(proximal.l1, total[0]) - total[0]) / divisor
    weight[0] = start + moved


def add_by_betting(tuple vectors, x, double slope, double w, start_of):
    """Bet on every weight of `x`, or on none if a number would not be finite."""
    cdef Event *event
    cdef Storage weights, sums, scales, sizes, rewards
    if start_of is not None:
        return pure.add_by_betting(vectors, floats(x), slope, w, start_of)
    weights, sums, scales, sizes, rewards = vectors
    event = gathered(x)
    try:
        betting_results(weights, sums, scales, sizes, rewards, event, slope, w)
        return stored(event, weights, sums, scales, sizes, rewards)
    finally:
        released(event)


cdef int betting_results(
    Storage weights,
    Storage sums,
    Storage scales,
    Storage sizes,
    Storage rewards,
    Event *event,
    double slope,
    double w,
) except -1 nogil:
    cdef double[5] bet
    cdef Py_ssize_t i, part
    for i in range(MOST_TRIES):
        find_all(event, weights, sums, scales)
        find_all(event, sizes, rewards, weights)
        if sums._has(event) and scales._has(event):
            break
    else:
        stop_looking_up()
    for i in range(event.count):
        bet = [
            weights._value(i), sums._value(i), scales._value(i), sizes._value(i), rewards._value(i)
        ]
        next_bet(slope * event.values[i], w * fabs(event.values[i]), 0.0, bet)
        for part in range(5):
            event.results[part * event.room + i] = bet[part]
    return 0


cdef inline void next_bet(double coin, double most, double start, double *bet) noexcept nogil:
    """Move a weight and its sums: of outcomes, the scale, the size and the reward."""
    cdef double reward
    if coin == 0.0:
        return
    if most > bet[2]:
        bet[2] = most
    bet[3] += fabs(coin)
    reward = bet[4] + coin * (bet[0] - start)
    bet[4] = reward if reward > 0.0 else 0.0
    bet[1] += coin
    bet[0] = start + bet[1] / (bet[3] + bet[2]) * ((1.0 + bet[4]) / bet[2])


def all_finite(x):
    """Return whether a dictionary holds finite floats, integers and truth values only."""
    cdef Event *event
    try:
        event = gathered(x)
    except TypeError:
        return False
    try:
        return is_finite(event)
    finally:
        released(event)


cdef bint is_finite(Event *event) noexcept:
    cdef Py_ssize_t i
    for i in range(event.count):
        if not isfinite(event.values[i]):
            return False
    return True


def add_all(tuple moves, x, double norm):
    """Add `step * x` to each vector with its own step, to all of them or to none."""
    cdef Event *event
    cdef Storage storage
    for vector, step in moves:
        if not vector.fits(x, step, norm):
            return False
    event = gathered(x)
    try:
        for vector, step in moves:
            storage = vector
            if storage.plain:
                storage._open(event)
                storage._add_found(event, step)
            else:
                vector.add(x, step)
        return True
    finally:
        released(event)


def add_both_by_confidence(tuple pairs, x, tuple steps, double beta):
    """Add `step S x` to weights and lower their variances, for each pair; all of them or none."""
    cdef Event *event
    cdef Storage weights, variance, other, other_variance
    (weights, variance), (other, other_variance) = pairs
    if not (weights.plain and other.plain):
        return pure.add_both_by_confidence(pairs, floats(x), steps, beta)
    event = gathered(x)
    try:
        return both_by_confidence(
            event, weights, variance, other, other_variance, steps[0], steps[1], beta
        )
    finally:
        released(event)


cdef bint both_by_confidence(
    Event *event,
    Storage weights,
    Storage variance,
    Storage other,
    Storage other_variance,
    double step,
    double other_step,
    double beta,
) except -1:
    cdef int left
    for left in range(MOST_TRIES):
        find_all(event, weights, variance)
        find_all(event, other, other_variance)
        if weights._has(event) and variance._has(event):
            break
    else:
        stop_looking_up()
    confidence_results(event, weights, variance, step, beta, 0)
    confidence_results(event, other, other_variance, other_step, beta, 2)
    return stored(event, weights, variance, other, other_variance)


cdef void confidence_results(
    Event *event, Storage weights, Storage variance, double step, double beta, Py_ssize_t part
) noexcept:
    """Make a part of the results the weights moved, and the next one their variances."""
    cdef double before, product, left
    cdef double *new = event.results + part * event.room
    cdef Py_ssize_t i
    for i in range(event.count):
        before = variance.values[variance.slots[i]] if variance.slots[i] >= 0 else 1.0
        product = before * event.values[i]
        left = before - beta * product * product
        new[i] = weights._value(i) + step * product
        new[event.room + i] = left if left > 0.0 else 0.0

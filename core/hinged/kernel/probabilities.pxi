# Probabilities of the classes, of scores and of logarithms.

cdef double LEAST_NORMAL = pure.LEAST_NORMAL, BELOW_1 = pure.BELOW_1


cdef enum:
    MOST_PARTS = 48  # of 53 bits: more than lie between the least and the largest double


cdef double exact_sum(const double *values, Py_ssize_t count) noexcept:
    """Return the sum of finite numbers, rounded once, as `math.fsum` does; it must not overflow.

    The sum is kept as parts that do not overlap, the smallest first (Shewchuk, 1997).
    """
    cdef double[MOST_PARTS] parts
    cdef double high, low, small, large
    cdef Py_ssize_t i, k, kept, size = 0
    for i in range(count):
        high, kept = values[i], 0
        for k in range(size):
            large, small = high, parts[k]
            if fabs(large) < fabs(small):
                large, small = small, large
            high = large + small
            low = small - (high - large)
            if low != 0.0:
                parts[kept] = low
                kept += 1
        if high != 0.0:
            parts[kept] = high
            kept += 1
        size = kept
    high = low = 0.0
    while size and low == 0.0:
        size -= 1
        large, small = high, parts[size]
        high = large + small
        low = small - (high - large)
    if size and low != 0.0 and (low > 0.0) == (parts[size - 1] > 0.0):
        small = 2.0 * low  # half a unit of the last place: the parts below it decide
        large = high + small
        if small == large - high:
            high = large
    return high


def log_probabilities(dict shares):
    """Return logarithms of shares, normalised to those of probabilities."""
    cdef Scored one = Scored()
    cdef double total
    cdef Py_ssize_t i
    if not shares:
        return {}
    one._begin(shares, 1)
    for i, value in enumerate(shares.values()):
        one.raw[i] = exp(<double>value)
    total = log(exact_sum(one.raw, one.count))
    return {label: <double>value - total for label, value in shares.items()}


def softmax(dict scores, keys=None):
    """Return exp(score) by key, divided by their sum, none of two or more 0 or 1."""
    cdef double top = -INFINITY, total
    cdef dict odds = {}
    for score in scores.values():
        if <double>score > top:
            top = score
    for label, score in scores.items():
        odds[label] = exp(<double>score - top)
    if len(odds) == 1:
        return dict.fromkeys(odds, 1.0)
    total = fsum(odds.values())
    return {y: inside(<double>odds[y] / total) for y in (odds if keys is None else keys)}


def both_probabilities(double score):
    """Return 1 - p and p, with p = 1 / (1 + exp(-score))."""
    cdef double odds = exp(-fabs(score))
    cdef double low = inside(odds / (1.0 + odds))
    cdef double high = inside(1.0 - low)
    return (low, high) if score > 0.0 else (high, low)


cdef double inside(double p) noexcept:
    """Return a probability moved off 0 and 1."""
    return LEAST_NORMAL if p < LEAST_NORMAL else p if p < BELOW_1 else BELOW_1

# Probabilities of the classes, of scores and of logarithms.

cdef double LEAST_NORMAL = pure.LEAST_NORMAL, BELOW_1 = pure.BELOW_1


def log_probabilities(dict shares):
    """Return logarithms of shares, normalised to those of probabilities."""
    cdef double total
    if not shares:
        return {}
    total = log(fsum([exp(<double>value) for value in shares.values()]))
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


cpdef double inside(double p) noexcept:
    """Return a probability moved off 0 and 1."""
    return LEAST_NORMAL if p < LEAST_NORMAL else p if p < BELOW_1 else BELOW_1

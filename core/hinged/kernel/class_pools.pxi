# Pools of many classes: an event of `MulticlassHedge` in one call.

cdef Scored scored_pool(pool, Event *event, x):
    """Return the scores of a pool, `None` unless all experts tell those of its classes, in order."""
    cdef list experts = pool._experts, scalings = pool.temperatures, trust = pool.trust
    cdef Scored found = Scored(), one
    cdef Scaling scaling
    cdef Py_ssize_t i, k, count = len(experts)
    cdef double *shares
    cdef double v, total
    found._begin(pool._parts, count + 2)
    found.experts = []
    found.shares = found.raw + found.count
    for k in range(found.count):
        found.raw[k] = 0.0
    for i in range(count):
        one = scored(experts[i], event, x)
        if one is None or not are_same(one.parts, found.parts):
            return None
        found.experts.append(one)
        scaling, v, shares = scalings[i], trust[i], found.shares + i * found.count
        scaling._share(one.served, shares, found.count)
        for k in range(found.count):
            found.raw[k] += v * shares[k]
    scaling, shares = scalings[count], found.shares + count * found.count
    scaling._share(found.raw, shares, found.count)
    for k in range(found.count):
        found.raw[k] = exp(shares[k])
    total = log(exact_sum(found.raw, found.count))
    for k in range(found.count):
        found.raw[k] = shares[k] - total
    return found if found._is_finite() else None


cdef bint are_same(dict one, dict other) except -1:
    """Return whether two dictionaries have the same labels in the same order."""
    cdef Py_ssize_t at = 0, other_at = 0
    cdef PyObject *found
    cdef PyObject *other_found
    if len(one) != len(other):
        return False
    while PyDict_Next(one, &at, &found, NULL) and PyDict_Next(other, &other_at, &other_found, NULL):
        if found != other_found:
            label, another = <object>found, <object>other_found
            if type(label) is not type(another) or label != another:
                return False
    return True


cdef bint pool_learned(
    pool, Event *event, x, y, Py_ssize_t at, double w, Scored found
) except -1:
    """Let a pool learn the class `y`, number `at`; return whether any expert moved."""
    cdef Scored one
    cdef Scaling scaling
    cdef Py_ssize_t i
    cdef list wrong = [one._best() != at for one in found.experts]
    pool.trust = judged(pool.trust, wrong, <double>pool._learning_rate * w, pool._share)
    for i, scaling in enumerate(pool.temperatures):
        scaling._learn_class(found.shares + i * found.count, found.count, at, w)
    return taught_classes(pool._experts, event, x, y, w, pool.accounting, found.experts)

# Scales: the records of an AutoScaler, and what they make of an event.

cdef double DEVIATIONS = pure.DEVIATIONS, LARGEST_VALUE = pure.LARGEST_VALUE
cdef long long MEMORY = pure.MEMORY, PROBATION = pure.PROBATION
cdef object MOST_EVENTS = 2 ** 52

cdef struct Record:
    long long n, first, others
    bint dense
    double mean, variance, least, largest


cdef inline double limited(double value, double least, double most) noexcept:
    value = value if value < most else most
    return value if value > least else least


def scaled_now(dict records, x):
    """Return finite numbers scaled by the records of their names; a name without one is 0."""
    cdef Record record
    cdef double value
    cdef dict found = {}
    for name, number_ in plain_dict(x).items():
        value = number(<PyObject *>number_)
        known = records.get(name)
        if known is not None:
            read_record(&record, known)
            value = scaled(&record, value)
        found[name] = value if known is not None else 0.0
    return found


def scaled_after(dict records, x, events, cap, bint keep):
    """Return an event scaled by the records that have learned it, and how many had no room."""
    cdef Record record
    cdef double value
    cdef dict found = {}
    cdef Py_ssize_t ignored = 0
    cdef double room = INFINITY if cap is None else cap - len(records)
    if events > MOST_EVENTS:
        return pure.scaled_after(records, x, events, cap, keep)
    for name, number_ in plain_dict(x).items():
        value = number(<PyObject *>number_)
        known = records.get(name)
        if known is None:
            room -= 1
        if known is None and room < 0:
            ignored += 1
            found[name] = 0.0
            continue
        if known is None:
            memset(&record, 0, sizeof(Record))
        else:
            read_record(&record, known)
        learn_value(&record, value, events)
        if keep:
            records[name] = (
                record.n, record.first, record.others, bool(record.dense),
                record.mean, record.variance, record.least, record.largest,
            )
        found[name] = scaled(&record, value)
    return found, ignored


cdef dict plain_dict(x):
    if type(x) is ReadFeatures:
        return (<ReadFeatures>x)._dict()
    return x if PyDict_CheckExact(x) else dict(x.items())


cdef int read_record(Record *record, tuple known) except -1:
    (
        record.n, record.first, record.others, record.dense,
        record.mean, record.variance, record.least, record.largest,
    ) = known
    return 0


cdef void learn_value(Record *record, double value, long long events) noexcept:
    cdef double off, bound
    cdef long long since = events - record.first + 1
    cdef bint at_once
    value = limited(value, -LARGEST_VALUE, LARGEST_VALUE)
    record.n += 1
    record.others += value != 0.0 and value != 1.0
    at_once = record.n == events < PROBATION and not (
        value == floor(value) and fabs(value) <= DEVIATIONS
    )
    if record.n == 1:
        record.first, record.dense = events, at_once
        record.least = record.largest = value
        return
    if record.dense:
        record.dense = 4 * record.n >= since
    else:
        record.dense = at_once or (
            record.n >= PROBATION and record.others >= 2 and 5 * record.n >= 3 * since
        )
    if value < record.least:
        value, record.least = record.least, value
    elif value > record.largest:
        value, record.largest = record.largest, value
    if record.n == 2:
        return
    off = value - record.mean
    if record.variance > 0.0:
        bound = DEVIATIONS * sqrt(record.variance)
        off = limited(off, -bound, bound)
    moved(min(record.n - 2, MEMORY), off, &record.mean, &record.variance)


cdef double scaled(const Record *record, double value) noexcept:
    cdef double mean = record.mean, variance = record.variance, inside, bound, size
    cdef long long weight
    if record.dense and record.n == 1:
        return 0.0
    if record.dense:
        weight = min(record.n - 2, MEMORY)
        inside = DEVIATIONS * sqrt(variance) if record.n > DEVIATIONS else INFINITY
        if record.least - mean >= -inside:
            weight += 1
            moved(weight, record.least - mean, &mean, &variance)
        if record.largest - mean <= inside:
            moved(weight + 1, record.largest - mean, &mean, &variance)
        if variance == 0.0:
            return 0.0
        bound = min(DEVIATIONS, sqrt(record.n))
        return limited((value - mean) / sqrt(variance), -bound, bound)
    if record.n == 0:
        return 0.0
    if record.n <= 2:
        size = min(fabs(record.least), fabs(record.largest))
    else:
        size = sqrt(mean * mean + variance)
    if size > DEVIATIONS:
        return limited(value / size, -DEVIATIONS, DEVIATIONS)
    bound = 2.0 * DEVIATIONS * max(1.0, size)
    return limited(value, -bound, bound)


cdef inline void moved(long long weight, double off, double *mean, double *variance) noexcept:
    cdef double step = off / weight
    mean[0] = mean[0] + step
    variance[0] = variance[0] + (off * (off - step) - variance[0]) / weight

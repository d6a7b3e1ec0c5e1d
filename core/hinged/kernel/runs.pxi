# Runs: many events learned one after the other, without the lock of the interpreter.

cdef enum:
    FEW_EVENTS = 16  # below, letting go of the lock costs more than it gives
    MOST_EVENTS = 1024  # that are placed at a time
    BLOCK = 16  # rows

cdef double WAIT_S = 5e-5

cdef struct Placed:  # an event that was read, and what was learned of it
    uint64_t serial
    PyObject **names
    Py_hash_t *hashes
    double *values
    int32_t *hints
    int32_t *numbers
    Py_ssize_t count
    double target, w
    Result result

cdef struct Rows:  # of a table
    const double *values
    const uint8_t *labels
    Py_ssize_t count, names, step, name_step  # the steps in bytes
    double *block  # for rows that are not in one piece, a few at a time


@cython.final
cdef class Claim:
    """The vectors of a learner: other threads wait for `_end` before they use these."""

    cdef list vectors

    def __init__(self, BinaryCore learner):
        cdef Storage vector
        cdef unsigned long thread = PyThread_get_thread_ident()
        self.vectors = []
        vectors = learner._vectors()
        for vector in vectors:
            if vector.thread == thread:  # within another claim
                return
        while any([vector._is_claimed() for vector in vectors]):
            sleep(WAIT_S)
        for vector in vectors:
            vector._leave_others_of(vectors)
            vector.thread = thread
        self.vectors = vectors

    cdef void _end(self) noexcept:
        cdef Storage vector
        for vector in self.vectors:
            vector.thread = 0


def learn_rows(BinaryCore learner, list names, const double[:, :] rows, const uint8_t[::1] labels):
    """Learn the first rows of a table: see `hinged.kernel.pure.learn_rows`."""
    cdef Event *event
    cdef RuleState state
    cdef Rows table
    cdef double *own_values
    cdef Py_ssize_t done
    cdef Storage weights = learner._weights, second, third = learner._third()
    cdef Claim claim = Claim(learner)
    table.count, table.names, table.block = rows.shape[0], len(names), NULL
    table.step, table.name_step = rows.strides[0], rows.strides[1]
    second = learner._read_state(&state)
    event = gathered(dict.fromkeys(names, 0.0))
    own_values = event.values
    try:
        if not (
            state.ordinary and table.count and event.count == table.names == rows.shape[1]
        ):
            return 0
        table.labels = &labels[0]
        table.values = &rows[0, 0] if table.names else NULL
        if table.name_step != sizeof(double):
            table.block = <double *>wider(NULL, BLOCK * table.names * sizeof(double))
        if table.count < FEW_EVENTS:
            done = learned_rows(learner, event, &table, &state, weights, second, third)
        else:
            with nogil:
                done = learned_rows(learner, event, &table, &state, weights, second, third)
        return done
    finally:
        claim._end()
        event.values = own_values
        PyMem_Free(table.block)
        forget(event)
        released(event)
        learner._write_state(&state)


cdef Py_ssize_t learned_rows(
    BinaryCore learner,
    Event *event,
    Rows *table,
    RuleState *state,
    Storage weights,
    Storage second,
    Storage third,
) except -1 nogil:
    """Learn rows as far as they are ordinary; return how many."""
    cdef Result result
    cdef const char *column
    cdef Py_ssize_t row, i, k, end, count = table.names, step = table.step
    for row in range(table.count):
        if table.block == NULL:
            event.values = <double *>(<const char *>table.values + row * step)
        else:
            if row % BLOCK == 0:  # column by column, each as far as it is in the cache
                end = min(BLOCK, table.count - row)
                for i in range(count):
                    column = <const char *>table.values + row * step + i * table.name_step
                    for k in range(0, BLOCK, 8):
                        HK_PREFETCH(column + (2 * BLOCK + k) * step)
                    for k in range(end):
                        table.block[k * count + i] = (<const double *>(column + k * step))[0]
            event.values = table.block + (row % BLOCK) * count
        event.has_norm = False
        if not learner._learned(
            event, 1.0 if table.labels[row] else -1.0, 1.0, &result, state, weights, second, third
        ):
            return row
    return table.count


def learn_run(
    BinaryCore learner,
    list xs,
    list ys,
    list ws,
    Py_ssize_t at,
    Py_ssize_t end,
    Py_ssize_t names,
):
    """Learn events that were read: see `hinged.kernel.pure.learn_run`."""
    cdef Event *event
    cdef RuleState state
    cdef Result *result
    cdef Placed *events = NULL
    cdef Py_ssize_t count, i, done = 0
    cdef Storage weights = learner._weights, second, third = learner._third()
    cdef list found = []
    cdef Claim claim
    end = min(end, at + MOST_EVENTS, len(xs), len(ys), len(ws))
    if at >= end or type(xs[at]) is not ReadFeatures:
        return found
    xs, ys, ws = xs[at:end], ys[at:end], ws[at:end]  # held: another thread may change the lists
    claim = Claim(learner)
    second = learner._read_state(&state)
    event = gathered_before(xs[0])
    try:
        if not state.ordinary:
            return found
        events = <Placed *>wider(NULL, len(xs) * sizeof(Placed))
        count = placed(event, events, xs, ys, ws, names)
        if count < FEW_EVENTS:
            done = learned_events(learner, event, events, count, &state, weights, second, third)
        else:
            with nogil:
                done = learned_events(
                    learner, event, events, count, &state, weights, second, third
                )
        for i in range(done):
            result = &events[i].result
            found.append(
                (result.positive, result.score, result.mistake, result.updated, result.loss)
            )
        return found
    finally:
        claim._end()
        forget(event)  # it may have names of an event that is gone
        released(event)
        PyMem_Free(events)
        learner._write_state(&state)


cdef Py_ssize_t placed(
    Event *event, Placed *events, list xs, list ys, list ws, Py_ssize_t names
) except -1:
    """Place events that were read as far as they are plain, with no more than so many names."""
    global last_serial
    cdef ReadFeatures x
    cdef Reading reading
    cdef Placed *one
    cdef Placed *before = NULL
    cdef Py_ssize_t i, most = 0
    for i in range(len(xs)):
        y, w = ys[i], ws[i]
        if not (
            type(xs[i]) is ReadFeatures and (y is True or y is False) and type(w) is float
        ):
            break
        x = xs[i]
        names -= x.count
        if names < 0:
            break
        reading = x.reading
        one = &events[i]
        one.names, one.hashes = x.first_name, reading.hashes + x.names_at
        one.values, one.count = x.first_value, x.count
        one.hints, one.numbers = reading.known.slots, reading.numbers + x.names_at
        one.target, one.w = 1.0 if y is True else -1.0, w
        if before != NULL and before.count == one.count and (
            before.names == one.names
            or memcmp(before.names, one.names, one.count * sizeof(PyObject *)) == 0
        ):
            one.serial = before.serial
        else:
            last_serial += 1
            one.serial = last_serial
        most = max(most, one.count)
        before = one
    else:
        i = len(xs)
    widen(event, most)
    return i


cdef Py_ssize_t learned_events(
    BinaryCore learner,
    Event *event,
    Placed *events,
    Py_ssize_t count,
    RuleState *state,
    Storage weights,
    Storage second,
    Storage third,
) except -1 nogil:
    """Learn events as far as they are ordinary; return how many."""
    cdef Placed *one
    cdef Py_ssize_t i
    for i in range(count):
        one = &events[i]
        event.serial, event.count, event.has_norm = one.serial, one.count, False
        event.names, event.hashes, event.values = one.names, one.hashes, one.values
        event.hints, event.numbers = one.hints, one.numbers
        if not learner._learned(
            event, one.target, one.w, &one.result, state, weights, second, third
        ):
            return i
        leave(event.table)
        event.table = NULL
    return count

# Runs: many events learned one after the other, without the lock of the interpreter.

cdef enum:
    FEW_EVENTS = 16  # below, letting go of the lock costs more than it gives
    MOST_EVENTS = 1024  # that are placed at a time
    BLOCK = 16  # rows

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
        cdef int left
        self.vectors = learner._vectors()
        for left in range(MOST_TRIES):  # else a run after the other would let nobody else go on
            if not self._is_waited_for():
                break
            sleep(WAIT_S)
        while not self._take():
            for vector in self.vectors:
                vector._wait()
            self.vectors = learner._vectors()  # they may be others now
        try:
            for vector in self.vectors:
                if vector.claims == 1:
                    vector._leave_others_of(self.vectors)
        except MemoryError:
            self._end()
            raise

    cdef bint _is_waited_for(self) noexcept:
        """Return whether other threads still wait for the end of a run that was before."""
        cdef Storage vector
        for vector in self.vectors:
            if vector.waiting and not vector.claims:
                return True
        return False

    cdef bint _take(self) noexcept:
        """Claim all vectors, or none if another thread has any; return whether it did."""
        cdef Storage vector
        for vector in self.vectors:
            if vector._is_claimed():
                return False
        for vector in self.vectors:
            vector.claims += 1  # one of this thread may be within another
            vector.thread = PyThread_get_thread_ident()
        return True

    cdef bint _has_all(
        self, Storage weights, Storage second, Storage third, RuleState *state
    ) noexcept:
        """Return whether it has the vectors that were read: another thread may have set others."""
        if not (self._has(weights) and self._has(second) and self._has(third)):
            return False
        return state.rule < PROXIMAL or (
            self._has(<Storage>state.sums)
            and self._has(<Storage>state.squares)
            and self._has(<Storage>state.scales)
            and self._has(<Storage>state.sizes)
            and self._has(<Storage>state.rewards)
        )

    cdef bint _has(self, Storage vector) noexcept:
        return vector is None or vector.thread == PyThread_get_thread_ident()

    cdef void _end(self) noexcept:
        cdef Storage vector
        for vector in self.vectors:
            vector.claims -= 1
            if not vector.claims:
                vector.thread = 0


def learn_rows(BinaryCore learner, list names, const double[:, :] rows, const uint8_t[::1] labels):
    """Learn the first rows of a table: see `hinged.kernel.pure.learn_rows`."""
    cdef Event *event
    cdef RuleState state
    cdef Rows table
    cdef double *own_values
    cdef Py_ssize_t done
    cdef Storage weights, second, third
    cdef Accounting account
    cdef Claim claim
    table.count, table.names, table.block = rows.shape[0], len(names), NULL
    table.step, table.name_step = rows.strides[0], rows.strides[1]
    event = gathered(dict.fromkeys(names, 0.0))
    own_values = event.values
    try:
        claim = Claim(learner)
        try:
            weights, account, third = learner._weights, learner.accounting, learner._third()
            second = learner._read_state(&state)
            if not (
                state.ordinary
                and claim._has_all(weights, second, third, &state)
                and table.count
                and event.count == table.names == rows.shape[1]
            ):
                return 0
            table.labels = &labels[0]
            table.values = &rows[0, 0] if table.names else NULL
            if table.name_step != sizeof(double):
                table.block = <double *>wider(NULL, BLOCK * table.names * sizeof(double))
            try:
                if table.count < FEW_EVENTS:
                    done = learned_rows(learner, event, &table, &state, weights, second, third)
                else:
                    with nogil:
                        done = learned_rows(learner, event, &table, &state, weights, second, third)
            finally:
                learner._write_state(&state)
            return done
        finally:
            claim._end()
    finally:
        event.values = own_values
        PyMem_Free(table.block)
        forget(event)
        released(event)


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
    cdef Storage weights, second, third
    cdef Accounting account
    cdef list found = []
    cdef Claim claim
    end = min(end, at + MOST_EVENTS, len(xs), len(ys), len(ws))
    if at >= end or type(xs[at]) is not ReadFeatures:
        return found
    xs, ys, ws = xs[at:end], ys[at:end], ws[at:end]  # held: another thread may change the lists
    event = gathered_before(xs[0])
    try:
        events = <Placed *>wider(NULL, len(xs) * sizeof(Placed))
        count = placed(event, events, xs, ys, ws, names)
        claim = Claim(learner)
        try:
            weights, account, third = learner._weights, learner.accounting, learner._third()
            second = learner._read_state(&state)
            if not (state.ordinary and claim._has_all(weights, second, third, &state)):
                return found
            try:
                if count < FEW_EVENTS:
                    done = learned_events(
                        learner, event, events, count, &state, weights, second, third
                    )
                else:
                    with nogil:
                        done = learned_events(
                            learner, event, events, count, &state, weights, second, third
                        )
            finally:
                learner._write_state(&state)
        finally:
            claim._end()
        for i in range(done):
            result = &events[i].result
            found.append(
                (result.positive, result.score, result.mistake, result.updated, result.loss)
            )
        return found
    finally:
        forget(event)  # it may have names of an event that is gone
        released(event)
        PyMem_Free(events)


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

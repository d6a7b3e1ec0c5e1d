# Scales: the records of an AutoScaler, and events scaled by them.

cdef double DEVIATIONS = pure.DEVIATIONS, LARGEST_VALUE = pure.LARGEST_VALUE
cdef long long MEMORY = pure.MEMORY, PROBATION = pure.PROBATION

cdef struct Record:
    long long n, first, others
    bint dense
    bint known  # whether its scale is
    double mean, variance, least, largest

cdef struct Scale:
    double centre, divisor, bound


cdef inline double limited(double value, double least, double most) noexcept:
    value = value if value < most else most
    return value if value > least else least


@cython.final
@cython.no_gc
cdef class ScaledFeatures(Features):
    """An event whose numbers were scaled: gathered already if its names are the last; owns both."""

    cdef Table *table  # used; that in which the names were found
    cdef uint64_t serial  # of the event

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            Py_XDECREF(self.first_name[i])
        PyMem_Free(self.first_name)
        PyMem_Free(self.first_value)
        leave(self.table)

    cdef int _begin(self, Event *event) except -1:
        """Take over the names of an event."""
        cdef Py_ssize_t i, count = event.count
        self.first_name = <PyObject **>wider(NULL, count * sizeof(PyObject *) + 1)
        self.first_value = <double *>wider(NULL, count * sizeof(double) + 1)
        for i in range(count):
            Py_XINCREF(event.names[i])
            self.first_name[i] = event.names[i]
        self.count, self.serial = count, event.serial
        return 0

    cdef void _keep(self, Table *table) noexcept:
        """Keep the table for the vectors that look the names up next."""
        if table != NULL:
            table.users += 1
        self.table = table


cdef Event *gathered_scaled(ScaledFeatures x) except NULL:
    """Return an event that was scaled: the one gathered last with other numbers, if it is there."""
    cdef Event *event = &shared[shared[0].busy]
    if event.busy or not event.serial or event.serial != x.serial:
        return gathered(x._dict())
    event.busy = True
    if event.table == NULL and x.table != NULL:
        event.table = x.table
        x.table.users += 1
    event.values = event.own_values  # those of a reading are not this event's
    memcpy(event.values, x.first_value, x.count * sizeof(double))
    event.has_norm = False
    return event


cdef class Scales:
    """The records of an `AutoScaler` by name: see `hinged.kernel.pure.Scales`."""

    cdef Storage names  # a vector of which only the names count
    cdef void *block
    cdef Record *records  # in it, each in a line of the cache: by the number of a name
    cdef Scale *scales  # behind them, so far as they are known
    cdef Py_ssize_t room

    def __cinit__(self, *args):
        self.names = Storage()

    def __init__(self, records=()):
        cdef dict given = dict(records)
        if given:
            self.names._reserve_all(len(given))
            self._reserve(len(given))
        for name, record in given.items():
            self[name] = record

    def __dealloc__(self):
        PyMem_Free(self.block)

    def __reduce__(self):
        return pure.revived_scales, (self.items(),)

    def __len__(self):
        return self.names.count

    def __contains__(self, name):
        return name in self.names

    def __sizeof__(self):
        cdef Py_ssize_t size = type(self).__basicsize__ + self.names.__sizeof__()
        return size + sizeof(Record) + self.room * (sizeof(Record) + sizeof(Scale))

    def __setitem__(self, name, tuple record):
        cdef Record read
        cdef int32_t slot
        (
            read.n, read.first, read.others, read.dense,
            read.mean, read.variance, read.least, read.largest,
        ) = record
        read.known = False
        slot = self.names._opened(<PyObject *>name, hk_hash(<PyObject *>name))
        self._reserve(self.names.count)
        self.records[slot] = read

    def get(self, name, default=pure.UNSEEN):
        cdef int32_t slot = self.names._found(<PyObject *>name, hk_hash(<PyObject *>name))
        self._reserve(self.names.count)
        return default if slot < 0 else self._record(slot)

    def items(self):
        cdef Py_ssize_t i
        self._reserve(self.names.count)
        return [
            (<object>self.names._name(i), self._record(i))
            for i in range(self.names.count)
            if self.records[i].n  # a comparison of names may have failed before it learned a value
        ]

    def unknown(self, names):
        return self.names.unknown(names)

    def newest(self, Py_ssize_t count):
        return self.names.newest(count)

    def now(self, x):
        cdef Event *event = gathered(x)
        cdef Py_ssize_t i
        cdef int32_t slot
        try:
            refuse_infinite(event)
            self._find(event)
            for i in range(event.count):
                slot = self.names.slots[i]
                event.results[i] = 0.0
                if slot >= 0:
                    if not self.records[slot].known:
                        self.scales[slot] = scale_of(&self.records[slot])
                        self.records[slot].known = True
                    event.results[i] = scaled(&self.scales[slot], event.values[i])
            return dictionary_of(event, x)
        finally:
            released(event)

    def learn(self, x, long long events, cap):
        cdef Event *event = gathered(x)
        try:
            return self._learn(event, events, cap, True, NULL)
        finally:
            released(event)

    def after(self, x, long long events, cap, bint keep):
        cdef ScaledFeatures made = ScaledFeatures.__new__(ScaledFeatures)
        cdef Event *event = gathered(x)
        try:
            made._begin(event)
            ignored = self._learn(event, events, cap, keep, made.first_value)
            made._keep(event.table)
            return made, ignored
        finally:
            released(event)

    cdef tuple _record(self, Py_ssize_t slot):
        cdef const Record *record = &self.records[slot]
        return (
            record.n, record.first, record.others, bool(record.dense),
            record.mean, record.variance, record.least, record.largest,
        )

    cdef int _reserve(self, Py_ssize_t count) except -1:
        """Make room for so many records; new ones are those of no value."""
        cdef Py_ssize_t room = max(count, self.room + self.room // 2, 8)
        cdef void *block
        cdef Record *records
        cdef Scale *scales
        if count <= self.room:
            return 0
        block = PyMem_Calloc(sizeof(Record) + room * (sizeof(Record) + sizeof(Scale)), 1)
        if block == NULL:
            raise MemoryError
        records = <Record *>((<size_t>block + LINE - 1) & ~<size_t>(LINE - 1))
        scales = <Scale *>(records + room)
        if self.room:
            memcpy(records, self.records, self.room * sizeof(Record))
            memcpy(scales, self.scales, self.room * sizeof(Scale))
        PyMem_Free(self.block)
        self.block, self.records, self.scales, self.room = block, records, scales, room
        return 0

    cdef int _find(self, Event *event) except -1:
        """Find the number of each name of an event, and fetch the records."""
        cdef Py_ssize_t i
        self.names._find(event)
        self._reserve(self.names.count)
        for i in range(event.count):
            if self.names.slots[i] >= 0:
                HK_PREFETCH(&self.records[self.names.slots[i]])
        return 0

    cdef int _open(self, Event *event, double room) except -1:
        """Make a record of each name of an event that has none, of so many at most."""
        cdef Storage names = self.names
        cdef Py_ssize_t i
        cdef double left = room
        cdef list kept
        for i in range(event.count):
            left -= names.slots[i] < 0
        if left >= 0.0:
            names._open(event)
        else:
            kept = []
            for i in range(event.count):
                if names.slots[i] < 0 and len(kept) < room:
                    kept.append(<object>event.names[i])
            for name in kept:
                names._opened(<PyObject *>name, hk_hash(<PyObject *>name))
        return self._find(event)

    cdef Py_ssize_t _learn(
        self, Event *event, long long events, cap, bint keep, double *found
    ) except -1:
        """Learn an event, for good if asked to `keep`; return how many names have no room.

        `found`, if it is not NULL, becomes what it is scaled to afterwards.
        """
        cdef double most = INFINITY if cap is None else cap, room
        cdef Py_ssize_t i, ignored = 0
        cdef int32_t slot
        cdef Record other
        cdef Record *record
        cdef Scale scale
        refuse_infinite(event)
        self._find(event)
        if keep and not self.names.all_found:
            self._open(event, most - self.names.count)
        room = 0.0 if keep else most - self.names.count
        for i in range(event.count):  # from here on nothing comes back to this object
            slot = self.names.slots[i]
            if slot >= 0 and keep:
                record = &self.records[slot]
            else:
                record = &other
                if slot >= 0:
                    other = self.records[slot]
                else:
                    memset(&other, 0, sizeof(Record))
                    room -= 1.0
                    if room < 0.0:
                        ignored += 1
                        if found != NULL:
                            found[i] = 0.0
                        continue
            learn_value(record, event.values[i], events)
            if found != NULL:
                scale = scale_of(record)
                found[i] = scaled(&scale, event.values[i])
        return ignored


cdef int refuse_infinite(Event *event) except -1:
    if not is_finite(event):
        raise TypeError("not a dictionary of finite numbers")
    return 0


cdef dict dictionary_of(Event *event, x):
    """Return the names of `x`, gathered in an event, with its results for values."""
    cdef dict made = {}
    cdef Py_ssize_t i
    if PyDict_CheckExact(x) and PyDict_Size(x) == event.count:
        made = (<dict>x).copy()  # which need not grow
    for i in range(event.count):
        made[<object>event.names[i]] = event.results[i]
    return made


cdef void learn_value(Record *record, double value, long long events) noexcept:
    cdef double off, bound
    cdef long long since = events - record.first + 1
    cdef bint at_once
    value = limited(value, -LARGEST_VALUE, LARGEST_VALUE)
    record.n += 1
    record.known = False
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
    if record.variance > 0.0 and not is_near(fabs(off), record.variance):
        bound = DEVIATIONS * sqrt(record.variance)
        off = limited(off, -bound, bound)
    moved(min(record.n - 2, MEMORY), off, &record.mean, &record.variance)


cdef inline double scaled(const Scale *scale, double value) noexcept:
    if scale.bound == 0.0:
        return 0.0
    return limited((value - scale.centre) / scale.divisor, -scale.bound, scale.bound)


cdef Scale scale_of(const Record *record) noexcept:
    cdef double mean = record.mean, variance = record.variance, size
    cdef long long weight
    cdef bint few = record.n <= DEVIATIONS
    if record.n == 0 or (record.dense and record.n == 1):
        return Scale(0.0, 1.0, 0.0)
    if record.dense:
        weight = min(record.n - 2, MEMORY)
        if few or is_near(mean - record.least, variance):
            weight += 1
            moved(weight, record.least - mean, &mean, &variance)
        if few or is_near(record.largest - mean, record.variance):
            moved(weight + 1, record.largest - mean, &mean, &variance)
        if variance == 0.0:
            return Scale(0.0, 1.0, 0.0)
        size = DEVIATIONS
        if record.n < DEVIATIONS * DEVIATIONS:
            size = sqrt(record.n)
        return Scale(mean, sqrt(variance), size)
    if record.n <= 2:
        size = min(fabs(record.least), fabs(record.largest))
    else:
        size = sqrt(mean * mean + variance)
    if size > DEVIATIONS:
        return Scale(0.0, size, DEVIATIONS)
    return Scale(0.0, 1.0, 2.0 * DEVIATIONS * max(1.0, size))


cdef inline bint is_near(double distance, double variance) noexcept:
    """Return whether a distance is within the standard deviations; mostly without their root."""
    cdef double square = distance * distance, most = DEVIATIONS * DEVIATIONS * variance
    if distance <= 0.0:
        return True
    if most > 1e-290:
        if square < 0.999 * most:
            return True
        if square > 1.001 * most:
            return False
    return distance <= DEVIATIONS * sqrt(variance)


cdef inline void moved(long long weight, double off, double *mean, double *variance) noexcept:
    cdef double step = off / weight
    mean[0] = mean[0] + step
    variance[0] = variance[0] + (off * (off - step) - variance[0]) / weight

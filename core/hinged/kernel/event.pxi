# Events: names, hashes and values, gathered into C arrays.

cdef extern from *:
    """
    static inline int hk_is_float(PyObject *o) { return PyFloat_CheckExact(o); }
    static inline int hk_is_text(PyObject *o) { return PyUnicode_CheckExact(o); }
    /* Names of such a type that are equal are the same in every other way, too. */
    static inline int hk_is_plain(PyObject *o) {
        return PyUnicode_CheckExact(o) || PyLong_CheckExact(o);
    }
    static inline int hk_same_type(PyObject *a, PyObject *b) { return Py_TYPE(a) == Py_TYPE(b); }
    static inline Py_hash_t hk_text_hash(PyObject *o) { return ((PyASCIIObject *)o)->hash; }
    static inline Py_hash_t hk_hash(PyObject *o) {
        if (PyUnicode_CheckExact(o) && hk_text_hash(o) != -1) return hk_text_hash(o);
        return PyObject_Hash(o);
    }
    static inline int hk_same_text(PyObject *a, PyObject *b) {
        return PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b)
            && PyUnicode_KIND(a) == PyUnicode_KIND(b)
            && memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b),
                      PyUnicode_GET_LENGTH(a) * PyUnicode_KIND(a)) == 0;
    }
    /* Bits 0 and 1 of a tag are the sign, bit 2 is no part of the number. */
    static inline int hk_same_whole(PyObject *a, PyObject *b) {
        const PyLongObject *one = (const PyLongObject *)a, *other = (const PyLongObject *)b;
    #if PY_VERSION_HEX < 0x030C0000
        Py_ssize_t size = Py_SIZE(a) < 0 ? -Py_SIZE(a) : Py_SIZE(a);
        return Py_SIZE(a) == Py_SIZE(b)
            && memcmp(one->ob_digit, other->ob_digit, size * sizeof(digit)) == 0;
    #else
        uintptr_t tag = one->long_value.lv_tag;
        return ((tag ^ other->long_value.lv_tag) & ~(uintptr_t)4) == 0
            && memcmp(one->long_value.ob_digit, other->long_value.ob_digit,
                      (tag >> 3) * sizeof(digit)) == 0;
    #endif
    }
    static inline int hk_is_whole(PyObject *o) { return PyLong_CheckExact(o); }
    #if defined(__GNUC__)
    #define HK_PREFETCH(p) __builtin_prefetch(p)
    #else
    #define HK_PREFETCH(p)
    #endif
    /* Names and values of a small dictionary lie behind each other, in one block. */
    static inline void hk_prefetch_items(PyObject *o) {
        const char *block = (const char *)((PyDictObject *)o)->ma_keys;
        Py_ssize_t size = 128 + 16 * ((PyDictObject *)o)->ma_used, at;
        for (at = 0; at < size && at < 2048; at += 64) HK_PREFETCH(block + at);
    }
    """
    bint hk_is_float(PyObject *) noexcept
    bint hk_is_text(PyObject *) noexcept nogil
    bint hk_is_plain(PyObject *) noexcept
    bint hk_same_type(PyObject *, PyObject *) noexcept
    Py_hash_t hk_text_hash(PyObject *) noexcept
    Py_hash_t hk_hash(PyObject *) except? -1
    bint hk_same_text(PyObject *, PyObject *) noexcept nogil
    bint hk_is_whole(PyObject *) noexcept nogil
    bint hk_same_whole(PyObject *, PyObject *) noexcept nogil
    void HK_PREFETCH(const void *) noexcept nogil
    void hk_prefetch_items(PyObject *) noexcept

cdef extern from "Python.h":
    int PyObject_RichCompareBool(PyObject *, PyObject *, int) except -1
    int Py_EQ
    unsigned long PyThread_get_thread_ident() noexcept nogil

cdef double SAFE_BOUND = 1e300
cdef double EPSILON = pure.EPSILON
cdef enum:
    MOST_VECTORS = 5
    MOST_TRIES = 16

cdef double LEAST = 2.0 ** -900
cdef double UP = 2.0 ** 600
cdef double DOWN = 2.0 ** -600

cdef struct Table  # see tables.pxi

cdef struct Event:
    uint64_t serial  # of this event alone; 0 if it is not whole
    Py_ssize_t count, room
    PyObject **names
    Py_hash_t *hashes
    double *values
    int32_t *hints  # of what was read: by the numbers of names, their entries in the table that
    int32_t *numbers  # was looked at last; NULL: there are none
    PyObject *reading  # owned; what all of these belong to, NULL: to the event itself, which has
    PyObject **own_names  # references to its names
    Py_hash_t *own_hashes
    double *own_values
    int32_t *places  # the entries in the table that is looked at
    Py_ssize_t squares  # so many of the last names are those of squares, NULL until they are
    int32_t *roots  # needed; the numbers of what they are squares of
    double *results  # one part per vector, stored only when all of them are finite
    double norm
    bint has_norm, busy
    PyObject *of  # only compared: the mapping that it is lent for while its owner calls Python
    bint lent
    Table *table  # used; that of the first vector that was looked at: see `share`
    unsigned long thread  # that had this vector
    int side  # which of a table's two places it is found in

cdef Event[2] shared  # the second for what is made of the first, as its squares
memset(shared, 0, sizeof(shared))
shared[1].side = 1
cdef uint64_t last_serial = 0


cdef void *wider(void *block, Py_ssize_t size) except NULL nogil:
    with gil:
        block = PyMem_Realloc(block, size)
        if block == NULL:
            raise MemoryError
    return block


cdef int widen(Event *event, Py_ssize_t count) except -1:
    if count <= event.room:
        return 0
    count += count // 2 + 64
    event.own_names = <PyObject **>wider(event.own_names, count * sizeof(PyObject *))
    event.own_hashes = <Py_hash_t *>wider(event.own_hashes, count * sizeof(Py_hash_t))
    event.own_values = <double *>wider(event.own_values, count * sizeof(double))
    event.places = <int32_t *>wider(event.places, count * sizeof(int32_t))
    event.roots = <int32_t *>wider(event.roots, count * sizeof(int32_t))
    event.results = <double *>wider(event.results, MOST_VECTORS * count * sizeof(double))
    event.room = count
    return 0


cdef inline double number(PyObject *value) except? -1.0:
    """Return a float, int or bool as a double; `TypeError` for the rest."""
    if hk_is_float(value):
        return PyFloat_AS_DOUBLE(<object>value)
    return other_number(value)


cdef double other_number(PyObject *value) except? -1.0:
    if PyFloat_Check(<object>value):
        return PyFloat_AS_DOUBLE(<object>value)
    if PyLong_Check(<object>value):
        try:
            return PyLong_AsDouble(<object>value)
        except OverflowError:
            raise TypeError("not a dictionary of floats") from None
    raise TypeError("not a dictionary of floats")


cdef inline bint is_text(PyObject *known, Py_hash_t hash, PyObject *name) noexcept:
    """Return whether a name is the text of a known one of that hash."""
    return (
        hk_is_text(name)
        and hk_is_text(known)
        and hk_text_hash(name) == hash
        and hk_same_text(known, name)
    )


cdef bint renewed(Event *event, object x) except -1:
    """Take over the values of a dictionary if it has the very names gathered last."""
    cdef Py_ssize_t at = 0, i = 0
    cdef PyObject *name
    cdef PyObject *value
    cdef double size
    cdef uint64_t serial = event.serial
    if not serial or event.reading != NULL or event.squares or PyDict_Size(x) != event.count:
        return False
    event.serial = 0  # not whole, until all values are in
    while PyDict_Next(x, &at, &name, &value):
        if event.names[i] != name and not is_text(event.names[i], event.hashes[i], name):
            return False
        size = number(value)
        if (<uint64_t *>&size)[0] != (<uint64_t *>&event.values[i])[0]:
            event.values[i] = size
            event.has_norm = False
        i += 1
    event.serial = serial
    return True


cdef Event *unused() except NULL:
    """Return an event that is shared, if one is not in use, or one of its own."""
    cdef Event *event = &shared[shared[0].busy]
    if event.busy:  # a name's own comparison came back to the kernel
        event = <Event *>PyMem_Malloc(sizeof(Event))
        if event == NULL:
            raise MemoryError
        memset(event, 0, sizeof(Event))
    return event


cdef Event *gathered_before(ReadFeatures x) except NULL:
    """Return an event that was read: with the arrays of its reading, which it keeps alive."""
    global last_serial
    cdef Event *event = unused()
    cdef Reading reading = x.reading
    cdef PyObject **names = x.first_name
    cdef double *values = x.first_value
    cdef PyObject *before
    event.busy = True
    if not (
        event.serial
        and event.reading != NULL
        and event.count == x.count
        and (event.names == names or memcmp(event.names, names, x.count * sizeof(PyObject *)) == 0)
    ):
        forget(event)
        try:
            widen(event, x.count)
        except BaseException:
            released(event)
            raise
        last_serial += 1
        event.serial = last_serial
    elif event.values != values:
        event.has_norm = False
    before = event.reading
    Py_INCREF(reading)
    event.reading = <PyObject *>reading
    event.names, event.hashes, event.values = names, reading.hashes + x.names_at, values
    event.hints, event.numbers = reading.known.slots, reading.numbers + x.names_at
    event.count = x.count
    Py_XDECREF(before)
    return event


cdef Event *gathered(object x) except NULL:
    """Return the event's names, hashes and values; to be released."""
    global last_serial
    cdef Event *event
    cdef Py_ssize_t at = 0, found = 0, i, count
    cdef PyObject *name
    cdef PyObject *value
    cdef PyObject **names
    cdef PyObject **objects
    cdef Py_hash_t *hashes
    cdef double *values
    for i in range(2):
        event = &shared[i]
        if event.of == <PyObject *>x and not event.lent:
            event.lent = True
            return event
    if not PyDict_CheckExact(x):
        if type(x) is ReadFeatures:
            return gathered_before(x)
        if type(x) is ScaledFeatures:
            return gathered_scaled(x)
        if not isinstance(x, dict):
            raise TypeError("not a dictionary of floats")
        x = dict(x.items())  # in its own order
    event = unused()
    hk_prefetch_items(<PyObject *>x)
    if renewed(event, x):
        event.busy = True
        return event
    event.busy = True
    try:
        forget(event)
        count = PyDict_Size(x)
        widen(event, count)
        event.names, event.hashes = event.own_names, event.own_hashes
        event.values, event.hints = event.own_values, NULL
        names, hashes, values = event.names, event.hashes, event.values
        objects = <PyObject **>event.results
        while found < count and PyDict_Next(x, &at, &name, &value):
            HK_PREFETCH(name)  # they are often in no cache: all are on their way before one is read
            HK_PREFETCH(value)
            names[found], objects[found] = name, value
            found += 1
        for i in range(found):
            values[i] = number(objects[i])
        for i in range(found):
            Py_XINCREF(names[i])
            hashes[i] = hk_text_hash(names[i]) if hk_is_text(names[i]) else -1
        event.count = found
        for i in range(found):
            if hashes[i] == -1:
                hashes[i] = hk_hash(names[i])
    except BaseException:
        released(event)
        raise
    last_serial += 1
    event.serial = last_serial
    return event


cdef void forget(Event *event) noexcept:
    """Let go of the names."""
    cdef Py_ssize_t i, count = event.count
    cdef PyObject *reading = event.reading
    cdef PyObject **names = event.own_names
    event.serial = 0
    event.count = event.squares = 0
    event.has_norm = False
    if reading != NULL:
        event.reading = NULL
        event.hints = event.numbers = NULL
        Py_XDECREF(reading)
        return
    for i in range(count):
        Py_XDECREF(names[i])


cdef void released(Event *event) noexcept:
    if event.lent:
        event.lent = False
        return
    leave(event.table)
    event.table = NULL
    if event == &shared[0] or event == &shared[1]:
        event.busy = False
        return
    forget(event)
    PyMem_Free(event.own_names)
    PyMem_Free(event.own_hashes)
    PyMem_Free(event.own_values)
    PyMem_Free(event.places)
    PyMem_Free(event.roots)
    PyMem_Free(event.results)
    PyMem_Free(event)


cdef double norm(const double *values, Py_ssize_t count) noexcept nogil:
    cdef double total = 0.0, scale, back, scaled
    cdef Py_ssize_t i
    for i in range(count):
        total += values[i] * values[i]
    if LEAST <= total < INFINITY:
        return sqrt(total)
    scale, back = (DOWN, UP) if total == INFINITY else (UP, DOWN)
    total = 0.0
    for i in range(count):
        scaled = scale * values[i]
        total += scaled * scaled
    return sqrt(total) * back

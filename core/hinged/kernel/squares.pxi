# Squares: features that let a linear rule learn a quadratic boundary.

cdef extern from *:
    """
    static inline int hk_ends_with(PyObject *text, Py_UCS4 mark) {
        Py_ssize_t size = PyUnicode_GET_LENGTH(text);
        return size && PyUnicode_READ_CHAR(text, size - 1) == mark;
    }
    """
    bint hk_ends_with(PyObject *, Py_UCS4) noexcept

cdef double LARGEST_ROOT = pure.LARGEST_ROOT
cdef Py_UCS4 SQUARE_MARK = ord(pure.SQUARE)
cdef enum:
    MOST_ROOTS = 65_536
cdef Table *roots = new_table()  # texts that were squared
cdef Entry *square_names = NULL  # by the number of a root; owned
cdef Py_ssize_t square_room = 0


cdef Entry *square_name(PyObject *root, Py_hash_t hash) except NULL:
    """Return the name of the square of a text, made if it is not known."""
    global roots, square_names, square_room
    cdef int32_t slot = entry_of_hash(roots, hash)
    cdef Py_ssize_t i
    if slot >= 0 and is_text(roots.entries[slot].name, roots.entries[slot].hash, root):
        return &square_names[slot]
    name = f"{<object>root}{pure.SQUARE}"
    if slot >= 0 or roots.count >= MOST_ROOTS:  # rarely: another text looks like it, or all is full
        for i in range(roots.count):
            Py_XDECREF(square_names[i].name)
        leave(roots)
        roots = new_table()
    slot = <int32_t>roots.count
    if slot >= square_room:
        square_names = <Entry *>wider(square_names, (2 * slot + 64) * sizeof(Entry))
        square_room = 2 * slot + 64
    add_entry(roots, root, hash)
    Py_INCREF(name)
    square_names[slot].name, square_names[slot].hash = <PyObject *>name, hk_hash(<PyObject *>name)
    return &square_names[slot]


cdef inline double square_of(double root) noexcept:
    if root > LARGEST_ROOT:
        root = LARGEST_ROOT
    elif root < -LARGEST_ROOT:
        root = -LARGEST_ROOT
    return root * root - 1.0


def with_squares(x):
    """Return the features and behind them their squares less 1, but for values of 0 and 1."""
    cdef dict found
    if isinstance(x, Features):
        x = (<Features>x)._dict()
    if not PyDict_CheckExact(x):
        return pure.with_squares(x)
    found = (<dict>x).copy()
    for name, value in (<dict>x).items():
        if type(value) is not float:
            return pure.with_squares(x)
        if value == 0.0 or value == 1.0:
            continue
        if type(name) is str:
            square = <object>square_name(<PyObject *>name, hk_hash(<PyObject *>name)).name
        else:
            square = f"{name}{pure.SQUARE}"
        if square not in found:
            found[square] = square_of(value)
    return found


cdef bint is_liftable(Event *event) noexcept:
    """Return whether all names are texts, and none of them that of a square."""
    cdef Py_ssize_t i
    for i in range(event.count):
        if not hk_is_text(event.names[i]) or hk_ends_with(event.names[i], SQUARE_MARK):
            return False
    return True


cdef Event *lifted(Event *event) except NULL:
    """Return `with_squares` of an event whose names are its own; to be released."""
    global last_serial
    cdef Event *made = unused()
    cdef Py_ssize_t i, count = event.count
    made.busy = True
    forget(made)
    try:
        widen(made, 2 * count)
        made.names, made.hashes = made.own_names, made.own_hashes
        made.values, made.hints = made.own_values, NULL
        for i in range(count):
            Py_XINCREF(event.names[i])
            made.names[i], made.hashes[i] = event.names[i], event.hashes[i]
            made.values[i] = event.values[i]
        made.count = count
        for i in range(count):
            if event.values[i] != 0.0 and event.values[i] != 1.0:
                made.names[made.count] = NULL
                made.values[made.count] = square_of(event.values[i])
                made.roots[made.squares] = <int32_t>i
                made.count += 1
                made.squares += 1
    except BaseException:
        released(made)
        raise
    last_serial += 1
    made.serial = last_serial
    return made


cdef inline int name_square(Event *event, Py_ssize_t i) except -1:
    """Name the value i of an event, if it is a square that has no name yet."""
    cdef Py_ssize_t root
    cdef Entry *square
    if event.names[i] == NULL:
        root = event.roots[i - (event.count - event.squares)]
        square = square_name(event.names[root], event.hashes[root])
        Py_XINCREF(square.name)
        event.names[i], event.hashes[i] = square.name, square.hash
    return 0


cdef uint64_t squared = 0, squares = 0  # serials of the event squared last, and of what was made


cdef Event *gathered_squares(Event *event, x) except NULL:
    """Return the event `with_squares(x)`, `x` being gathered in `event`; to be released."""
    global squared, squares
    cdef Event *made = &shared[1]
    cdef Py_ssize_t i, count = event.count
    if (
        squared == event.serial
        and squares == made.serial
        and made.count == 2 * count
        and not made.busy
    ):
        made.has_norm = False
        for i in range(count):  # every name has a square: in order, behind all of them
            if event.values[i] == 0.0 or event.values[i] == 1.0:
                break
            made.values[i] = event.values[i]
            made.values[count + i] = square_of(event.values[i])
        else:
            made.busy = True
            return made
    made = lifted(event) if is_liftable(event) else gathered(with_squares(x))
    squared, squares = event.serial, made.serial
    return made


cdef inline bint is_quadratic(BinaryCore learner) except -1:
    """Return whether a learner is a `Quadratic`, and no subclass of it."""
    return not learner._rule and getattr(learner, "_by_squares", False)

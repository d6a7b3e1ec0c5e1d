# Squares: features that let a linear rule learn a quadratic boundary.

cdef double LARGEST_ROOT = pure.LARGEST_ROOT
cdef enum:
    MOST_SQUARE_NAMES = 65_536
cdef dict square_names = {}


cdef object square_name(object name):
    """Return the name of the square of a feature; those of texts made last are kept."""
    if type(name) is not str:
        return f"{name}{pure.SQUARE}"
    square = square_names.get(name)
    if square is None:
        if len(square_names) >= MOST_SQUARE_NAMES:
            square_names.clear()
        square = square_names[name] = f"{name}{pure.SQUARE}"
    return square


cdef inline double square_of(double root) noexcept:
    if root > LARGEST_ROOT:
        root = LARGEST_ROOT
    elif root < -LARGEST_ROOT:
        root = -LARGEST_ROOT
    return root * root - 1.0


def with_squares(x):
    """Return the features and behind them their squares less 1, but for values of 0 and 1."""
    cdef dict found
    if type(x) is ReadFeatures:
        x = (<ReadFeatures>x)._dict()
    if not PyDict_CheckExact(x):
        return pure.with_squares(x)
    found = (<dict>x).copy()
    for name, value in (<dict>x).items():
        if type(value) is not float:
            return pure.with_squares(x)
        if value == 0.0 or value == 1.0:
            continue
        square = square_name(name)
        if square not in found:
            found[square] = square_of(value)
    return found


cdef uint64_t squared = 0, squares = 0  # serials of the event squared last, and of what was made


cdef Event *gathered_squares(Event *event, x) except NULL:
    """Return the event `with_squares(x)`, `x` being gathered in `event`; to be released."""
    global squared, squares
    cdef Event *made = &shared[1]
    cdef Py_ssize_t i, count = event.count
    if squared == event.serial and squares == made.serial and made.count == 2 * count:
        made.has_norm = False
        for i in range(count):  # every name has a square: in order, behind all of them
            if event.values[i] == 0.0 or event.values[i] == 1.0:
                break
            made.values[i] = event.values[i]
            made.values[count + i] = square_of(event.values[i])
        else:
            made.busy = True
            return made
    made = gathered(with_squares(x))
    squared, squares = event.serial, made.serial
    return made


cdef inline bint is_quadratic(BinaryCore learner) except -1:
    """Return whether a learner is a `Quadratic`, and no subclass of it."""
    return not learner._rule and getattr(learner, "_by_squares", False)

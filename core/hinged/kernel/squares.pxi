# Squares: features that let a linear rule learn a quadratic boundary.

cdef double LARGEST_ROOT = pure.LARGEST_ROOT
cdef enum:
    MOST_SQUARE_NAMES = 10_000
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


def with_squares(x):
    """Return the features and behind them their squares less 1, but for values of 0 and 1."""
    cdef double root
    cdef dict found
    if type(x) is ReadFeatures:
        x = (<ReadFeatures>x)._dict()
    if not PyDict_CheckExact(x):
        return pure.with_squares(x)
    found = (<dict>x).copy()
    for name, value in (<dict>x).items():
        if type(value) is not float:
            return pure.with_squares(x)
        root = value
        if root == 0.0 or root == 1.0:
            continue
        if root > LARGEST_ROOT:
            root = LARGEST_ROOT
        elif root < -LARGEST_ROOT:
            root = -LARGEST_ROOT
        square = square_name(name)
        if square not in found:
            found[square] = root * root - 1.0
    return found


cdef object squares_told(expert, x, bint positive, double w):
    """Return what a `Quadratic` tells of an ordinary event that it learns; `None` of any other."""
    if not getattr(expert, "_by_squares", False):
        return None
    return expert.lifted._learn_at_once(with_squares(x), positive, w)

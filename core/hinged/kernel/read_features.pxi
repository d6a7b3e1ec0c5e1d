# Features that were read, as they were sent and as MessagePack, with no object for a value.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdlib cimport qsort

cdef struct Named:
    const char *text
    Py_ssize_t size
    Py_ssize_t at  # the number of its value


cdef int by_bytes(const void *one, const void *other) noexcept nogil:
    cdef const Named *a = <const Named *>one
    cdef const Named *b = <const Named *>other
    cdef int found = memcmp(a.text, b.text, min(a.size, b.size))
    return found if found else (a.size > b.size) - (a.size < b.size)


@cython.final
@cython.no_gc
cdef class Sorted:
    """The names of an event by their bytes: most events have those of the one before."""

    cdef KnownNames known  # which has the names
    cdef PyObject **names  # as they came
    cdef Named *items
    cdef Py_ssize_t count, size  # of the names in MessagePack

    def __dealloc__(self):
        PyMem_Free(self.names)
        PyMem_Free(self.items)

    cdef bint has(self, ReadFeatures x) noexcept:
        """Return whether they are the names of these features, in the same order."""
        return (
            self.known is x.reading.known
            and self.count == x.count
            and (
                x.count == 0
                or memcmp(self.names, x.first_name, x.count * sizeof(PyObject *)) == 0
            )
        )

    cdef int take(self, ReadFeatures x) except -1:
        """Take the names of features."""
        cdef Py_ssize_t i
        self.known = x.reading.known
        self.names = <PyObject **>wider(NULL, x.count * sizeof(PyObject *) + 1)
        self.items = <Named *>wider(NULL, x.count * sizeof(Named) + 1)
        if x.count:
            memcpy(self.names, x.first_name, x.count * sizeof(PyObject *))
        for i in range(x.count):
            item = &self.items[i]
            item.text = PyUnicode_AsUTF8AndSize(<object>self.names[i], &item.size)
            item.at = i
            self.size += item.size + (1 if item.size < 32 else 2 if item.size < 256 else 3)
        self.count = x.count
        qsort(self.items, x.count, sizeof(Named), by_bytes)
        return 0


cdef Sorted last_sorted = Sorted()


cdef inline char *put(char *p, int kind, uint64_t value, int size) noexcept:
    """Write a kind and so many bytes of a number, the highest first; return the end."""
    p[0] = <char>kind
    p += 1
    while size:
        size -= 1
        p[0] = <char>(value >> 8 * size)
        p += 1
    return p


def packed_features(x):
    """Return features as MessagePack, `None` if they were not read: see `hinged.kernel.pure`."""
    global last_sorted
    cdef ReadFeatures features
    cdef Sorted names
    cdef Named *item
    cdef double *values
    cdef char *p
    cdef Py_ssize_t i
    if type(x) is not ReadFeatures:
        return None
    features = x
    if not last_sorted.has(features):
        names = Sorted()
        names.take(features)
        last_sorted = names
    values = features.first_value
    i = 1 if features.count < 16 else 3
    packed = PyBytes_FromStringAndSize(NULL, i + last_sorted.size + 9 * features.count)
    p = PyBytes_AS_STRING(packed)
    if features.count < 16:
        p = put(p, 0x80 | features.count, 0, 0)
    else:
        p = put(p, 0xDE, features.count, 2)
    for i in range(features.count):
        item = &last_sorted.items[i]
        if item.size < 32:
            p = put(p, 0xA0 | item.size, 0, 0)
        elif item.size < 256:
            p = put(p, 0xD9, item.size, 1)
        else:
            p = put(p, 0xDA, item.size, 2)
        memcpy(p, item.text, item.size)
        p = put(p + item.size, 0xCB, (<uint64_t *>&values[item.at])[0], 8)
    return packed


def sent_text(x, bytes text):
    """Return the JSON of features, `None` if they were not read: see `hinged.kernel.pure`."""
    cdef ReadFeatures features
    if type(x) is not ReadFeatures:
        return None
    features = x
    return text[features.start : features.end]

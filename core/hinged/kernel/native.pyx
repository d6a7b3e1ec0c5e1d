# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The inner loops in C: the same bits as `hinged.kernel.pure`, several times as fast.

A vector is a table of entries in the order in which their names came, with an index of hashes.
An event is gathered once into C arrays; each name is looked up once, in the first vector of a
rule, and tried at the same place of the others, whose tables usually grow together. Every
function either passes an event on to the pure version or leaves no trace of an error.
"""

from cpython.dict cimport PyDict_Check, PyDict_Next, PyDict_Size
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsDouble, PyLong_Check
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.math cimport INFINITY, copysign, exp, fabs, isfinite, sqrt
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from collections.abc import ItemsView, KeysView, Mapping, ValuesView

from hinged.kernel import pure

cdef extern from *:
    """
    static inline int hk_is_text(PyObject *o) { return PyUnicode_CheckExact(o); }
    static inline Py_hash_t hk_hash(PyObject *o) {
        if (PyUnicode_CheckExact(o)) {
            Py_hash_t h = ((PyASCIIObject *)o)->hash;
            if (h != -1) return h;
        }
        return PyObject_Hash(o);
    }
    static inline int hk_same_text(PyObject *a, PyObject *b) {
        return PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b)
            && PyUnicode_KIND(a) == PyUnicode_KIND(b)
            && memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b),
                      PyUnicode_GET_LENGTH(a) * PyUnicode_KIND(a)) == 0;
    }
    #if defined(__GNUC__)
    #define HK_PREFETCH(p) __builtin_prefetch(p)
    #else
    #define HK_PREFETCH(p)
    #endif
    """
    bint hk_is_text(PyObject *)
    Py_hash_t hk_hash(PyObject *) except? -1
    bint hk_same_text(PyObject *, PyObject *)
    void HK_PREFETCH(void *) noexcept

cdef extern from "Python.h":
    int PyObject_RichCompareBool(PyObject *, PyObject *, int) except -1
    int Py_EQ

cdef double SAFE_BOUND = 1e300
cdef double EPSILON = pure.EPSILON
cdef enum:
    MOST_VECTORS = 5

cdef double LEAST = 2.0 ** -900
cdef double UP = 2.0 ** 600
cdef double DOWN = 2.0 ** -600

cdef struct Entry:
    PyObject *name
    Py_hash_t hash
    double value

cdef struct Event:
    Py_ssize_t count, room
    PyObject **names  # owned while the event is in use
    Py_hash_t *hashes
    double *values
    int32_t *slots
    double *results  # one part per vector, stored only when all of them are finite
    bint busy

cdef Event shared
memset(&shared, 0, sizeof(Event))


cdef int widen(Event *event, Py_ssize_t count) except -1:
    cdef void *block
    if count <= event.room:
        return 0
    count += count // 2 + 64
    block = PyMem_Realloc(event.names, count * sizeof(PyObject *))
    if block == NULL:
        raise MemoryError
    event.names = <PyObject **>block
    block = PyMem_Realloc(event.hashes, count * sizeof(Py_hash_t))
    if block == NULL:
        raise MemoryError
    event.hashes = <Py_hash_t *>block
    block = PyMem_Realloc(event.values, count * sizeof(double))
    if block == NULL:
        raise MemoryError
    event.values = <double *>block
    block = PyMem_Realloc(event.results, MOST_VECTORS * count * sizeof(double))
    if block == NULL:
        raise MemoryError
    event.results = <double *>block
    block = PyMem_Realloc(event.slots, count * sizeof(int32_t))
    if block == NULL:
        raise MemoryError
    event.slots = <int32_t *>block
    event.room = count
    return 0


cdef inline double number(PyObject *value) except? -1.0:
    """Return a float, int or bool as a double; `TypeError` for the rest."""
    if PyFloat_Check(<object>value):
        return PyFloat_AS_DOUBLE(<object>value)
    if PyLong_Check(<object>value):
        try:
            return PyLong_AsDouble(<object>value)
        except OverflowError:
            raise TypeError("not a dictionary of floats") from None
    raise TypeError("not a dictionary of floats")


cdef Event *gathered(object x) except NULL:
    """Return the event's names, hashes and values; to be released."""
    cdef Event *event = &shared
    cdef Py_ssize_t at = 0, count
    cdef PyObject *name
    cdef PyObject *value
    if not PyDict_Check(x):
        raise TypeError("not a dictionary of floats")
    if event.busy:  # a name's own comparison came back to the kernel
        event = <Event *>PyMem_Malloc(sizeof(Event))
        if event == NULL:
            raise MemoryError
        memset(event, 0, sizeof(Event))
    event.busy = True
    event.count = 0
    try:
        count = PyDict_Size(x)
        widen(event, count)
        while event.count < count and PyDict_Next(x, &at, &name, &value):
            event.values[event.count] = number(value)
            Py_INCREF(<object>name)
            event.names[event.count] = name
            event.count += 1
        for at in range(event.count):
            event.hashes[at] = hk_hash(event.names[at])
    except BaseException:
        released(event)
        raise
    return event


cdef void released(Event *event) noexcept:
    cdef Py_ssize_t i
    for i in range(event.count):
        Py_XDECREF(event.names[i])
    event.busy = False
    if event != &shared:
        PyMem_Free(event.names)
        PyMem_Free(event.hashes)
        PyMem_Free(event.values)
        PyMem_Free(event.results)
        PyMem_Free(event.slots)
        PyMem_Free(event)


cdef double norm(const double *values, Py_ssize_t count) noexcept:
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


cdef class Storage:
    """The numbers of a weight vector by name: see `hinged.kernel.pure.Storage`."""

    cdef Entry *entries
    cdef uint64_t *index  # the upper half of a hash, and the number of an entry from 1
    cdef uint8_t *dirty
    cdef Py_ssize_t count, room, mask, dirty_count
    cdef set others  # changed names that are not stored
    cdef bint tracked
    cdef public double bound
    cdef public bint plain

    def __cinit__(self, *args, **kwargs):
        self.plain = True
        self.mask = -1

    def __init__(self, values=None):
        self._drop()
        self.bound = 0.0
        if values:
            self._load(values)

    def __dealloc__(self):
        self._drop()

    cdef void _drop(self) noexcept:
        cdef Entry *entries = self.entries
        cdef Py_ssize_t i, count = self.count
        PyMem_Free(self.index)
        PyMem_Free(self.dirty)
        self.entries, self.index, self.dirty = NULL, NULL, NULL
        self.count = self.room = self.dirty_count = 0
        self.mask = -1
        for i in range(count):
            Py_XDECREF(entries[i].name)
        PyMem_Free(entries)

    cdef int _load(self, dict values) except -1:
        cdef PyObject *name
        cdef PyObject *value
        cdef double size
        cdef int32_t slot
        self._reserve(len(values))
        for key, number_ in values.items():
            size = number_
            slot = self._opened(<PyObject *>key, hk_hash(<PyObject *>key))
            self.entries[slot].value = size
            if fabs(size) > self.bound:
                self.bound = fabs(size)
        return 0

    cdef int _reserve(self, Py_ssize_t count) except -1:
        """Make room for so many entries."""
        cdef Py_ssize_t room = self.room, i, at, size
        cdef void *block
        if count <= room:
            return 0
        if count > 0x3FFFFFFF:
            raise MemoryError("too many names")
        room = max(count, room + room // 2, 8)
        block = PyMem_Realloc(self.entries, room * sizeof(Entry))
        if block == NULL:
            raise MemoryError
        self.entries = <Entry *>block
        if self.tracked:
            self._flags(room)
        size = 16
        while size < room + room // 2:
            size *= 2
        if size - 1 != self.mask:
            block = PyMem_Malloc(size * sizeof(uint64_t))
            if block == NULL:
                raise MemoryError
            PyMem_Free(self.index)
            self.index = <uint64_t *>block
            self.mask = size - 1
            memset(self.index, 0, size * sizeof(uint64_t))
            for i in range(self.count):
                at = <Py_ssize_t>(<uint64_t>self.entries[i].hash & <uint64_t>self.mask)
                while self.index[at]:
                    at = (at + 1) & self.mask
                self.index[at] = self._mark(self.entries[i].hash, i)
        self.room = room
        return 0

    cdef int _flags(self, Py_ssize_t room) except -1:
        cdef void *block = PyMem_Realloc(self.dirty, room if room else 1)
        if block == NULL:
            raise MemoryError
        self.dirty = <uint8_t *>block
        memset(self.dirty + self.count, 0, room - self.count)
        return 0

    cdef inline uint64_t _mark(self, Py_hash_t hash, Py_ssize_t slot) noexcept:
        return (<uint64_t>hash & <uint64_t>0xFFFFFFFF00000000) | <uint64_t>(slot + 1)

    cdef int32_t _found(self, PyObject *name, Py_hash_t hash) except -2:
        """Return the number of a name's entry, -1 if it is not stored."""
        cdef uint64_t mark, upper = <uint64_t>hash & <uint64_t>0xFFFFFFFF00000000
        cdef Py_ssize_t at
        cdef int32_t slot
        cdef PyObject *stored
        cdef Entry *entries
        cdef Py_ssize_t count
        cdef int same
        if self.mask < 0:
            return -1
        at = <Py_ssize_t>(<uint64_t>hash & <uint64_t>self.mask)
        while True:
            mark = self.index[at]
            if mark == 0:
                return -1
            if mark & <uint64_t>0xFFFFFFFF00000000 == upper:
                slot = <int32_t>(<uint32_t>mark - 1)
                stored = self.entries[slot].name
                if stored == name:
                    return slot
                if self.entries[slot].hash == hash:
                    if hk_is_text(stored) and hk_is_text(name):
                        if hk_same_text(stored, name):
                            return slot
                    else:
                        entries, count = self.entries, self.count
                        Py_INCREF(<object>stored)
                        try:
                            same = PyObject_RichCompareBool(stored, name, Py_EQ)
                        finally:
                            Py_XDECREF(stored)
                        if entries != self.entries or count != self.count:
                            raise RuntimeError("the vector changed while a name was looked up")
                        if same:
                            return slot
            at = (at + 1) & self.mask

    cdef int32_t _opened(self, PyObject *name, Py_hash_t hash) except -2:
        """Return the number of a name's entry, which is made if there is none: of value 0."""
        cdef int32_t slot = self._found(name, hash)
        cdef Py_ssize_t at
        if slot >= 0:
            return slot
        self._reserve(self.count + 1)
        at = <Py_ssize_t>(<uint64_t>hash & <uint64_t>self.mask)
        while self.index[at]:
            at = (at + 1) & self.mask
        slot = <int32_t>self.count
        Py_INCREF(<object>name)
        self.entries[slot].name = name
        self.entries[slot].hash = hash
        self.entries[slot].value = 0.0
        self.index[at] = self._mark(hash, slot)
        self.count += 1
        if self.tracked and self.others:
            self.others.discard(<object>name)
        return slot

    cdef inline void _touch(self, int32_t slot) noexcept:
        if self.tracked and not self.dirty[slot]:
            self.dirty[slot] = 1
            self.dirty_count += 1

    cdef int _find(self, Event *event) except -1:
        """Find the entry of each name of an event."""
        cdef Py_ssize_t i
        if self.mask < 0:
            for i in range(event.count):
                event.slots[i] = -1
            return 0
        if self.count > 1024:
            for i in range(event.count):
                HK_PREFETCH(&self.index[<Py_ssize_t>(<uint64_t>event.hashes[i] & <uint64_t>self.mask)])
        for i in range(event.count):
            event.slots[i] = self._found(event.names[i], event.hashes[i])
        return 0

    cdef int _open(self, Event *event) except -1:
        """Make an entry for each name of an event that has none; touch all."""
        cdef Py_ssize_t i
        for i in range(event.count):
            if event.slots[i] < 0:
                event.slots[i] = self._opened(event.names[i], event.hashes[i])
            self._touch(event.slots[i])
        return 0

    cdef inline int32_t _beside(self, Storage other, Event *event, Py_ssize_t i) except -2:
        """Return the entry of a name whose entry in another vector, if any, is known."""
        cdef int32_t slot = event.slots[i]
        if 0 <= slot < self.count and self.entries[slot].name == other.entries[slot].name:
            return slot
        return self._found(event.names[i], event.hashes[i])

    cdef inline double _value(self, Storage first, Event *event, Py_ssize_t i) except? -1.0:
        cdef int32_t slot = event.slots[i] if self is first else self._beside(first, event, i)
        return self.entries[slot].value if slot >= 0 else 0.0

    cdef int _set(self, Storage first, Event *event, Py_ssize_t part) except -1:
        """Set the numbers of an event's names to a part of the results."""
        cdef Py_ssize_t i
        cdef int32_t slot
        if self is first:
            self._open(event)
        for i in range(event.count):
            slot = event.slots[i]
            if self is not first:
                slot = self._beside(first, event, i)
                if slot < 0:
                    slot = self._opened(event.names[i], event.hashes[i])
                self._touch(slot)
            self.entries[slot].value = event.results[part * event.room + i]
        self.bound = INFINITY  # not known: the next `fits` looks at all numbers
        return 0

    def __len__(self):
        return self.count

    def __contains__(self, name):
        return self._found(<PyObject *>name, hk_hash(<PyObject *>name)) >= 0

    def __iter__(self):
        return iter(self.names())

    def __getitem__(self, name):
        cdef int32_t slot = self._found(<PyObject *>name, hk_hash(<PyObject *>name))
        if slot < 0:
            raise KeyError(name)
        return self.entries[slot].value

    def __setitem__(self, name, double value):
        cdef int32_t slot = self._opened(<PyObject *>name, hk_hash(<PyObject *>name))
        self._touch(slot)
        self.entries[slot].value = value

    def names(self):
        cdef Py_ssize_t i
        return [<object>self.entries[i].name for i in range(self.count)]

    def numbers(self):
        cdef Py_ssize_t i
        return [self.entries[i].value for i in range(self.count)]

    def parts(self):
        cdef Py_ssize_t i
        cdef dict values = {}
        for i in range(self.count):
            values[<object>self.entries[i].name] = self.entries[i].value
        return values, self._changed() if self.tracked else None

    cdef set _changed(self):
        cdef Py_ssize_t i
        cdef set changed = set(self.others)
        if self.dirty_count:
            for i in range(self.count):
                if self.dirty[i]:
                    changed.add(<object>self.entries[i].name)
        return changed

    def set_changed(self, changed):
        if changed is None:
            self.tracked = False
            return
        self.track()
        self.put_back_changed(changed)

    def get(self, name):
        cdef int32_t slot = self._found(<PyObject *>name, hk_hash(<PyObject *>name))
        return 0.0 if slot < 0 else self.entries[slot].value

    def lookup(self, name, default):
        cdef int32_t slot = self._found(<PyObject *>name, hk_hash(<PyObject *>name))
        return default if slot < 0 else self.entries[slot].value

    def dot(self, x):
        cdef Event *event = gathered(x)
        cdef double total = 0.0
        cdef Py_ssize_t i
        try:
            self._find(event)
            for i in range(event.count):
                if event.slots[i] >= 0:
                    total += self.entries[event.slots[i]].value * event.values[i]
                else:
                    total += 0.0 * event.values[i]
        finally:
            released(event)
        return total

    def view(self):
        return View(self)

    def unknown(self, names):
        return [name for name in names if self._found(<PyObject *>name, hk_hash(<PyObject *>name)) < 0]

    def newest(self, Py_ssize_t count):
        cdef Py_ssize_t i
        return [<object>self.entries[i].name for i in range(max(0, self.count - count), self.count)]

    def fits(self, x, double step, double norm):
        cdef double bound = self.bound + fabs(step) * norm
        if bound < SAFE_BOUND:
            self.bound = bound
            return True
        return self._fits_exactly(x, step)

    cdef bint _fits_exactly(self, x, double step) except -1:
        cdef double bound = 0.0, size
        cdef Py_ssize_t i
        for name, value in x.items():
            size = fabs(<double>self.get(name) + step * <double>float(value))
            if not isfinite(size):
                return False
            bound = max(bound, size)
        for i in range(self.count):
            bound = max(bound, fabs(self.entries[i].value))
        self.bound = bound
        return True

    def move(self, x, double step, double norm):
        cdef double bound = self.bound + fabs(step) * norm
        if bound < SAFE_BOUND:
            self.bound = bound
        elif not self._fits_exactly(x, step):
            return False
        self._add(x, step)
        return True

    def add(self, x, double step):
        self._add(x, step)

    cdef int _add(self, x, double step) except -1:
        cdef Event *event = gathered(x)
        cdef Py_ssize_t i
        cdef Entry *entry
        try:
            self._find(event)
            self._open(event)
            for i in range(event.count):
                entry = &self.entries[event.slots[i]]
                entry.value = entry.value + step * event.values[i]
        finally:
            released(event)
        return 0

    def opened(self, names):
        return self  # setting an item notes that it changed

    def put(self, values):
        for name, value in values.items():
            self[name] = value
        self.bound = INFINITY

    def replace(self, Storage other):
        cdef Py_ssize_t i
        cdef int32_t slot
        cdef set changed = set()
        if self.tracked:
            changed = self._changed()
            for i in range(self.count):
                if other._found(self.entries[i].name, self.entries[i].hash) < 0:
                    changed.add(<object>self.entries[i].name)
            for i in range(other.count):
                slot = self._found(other.entries[i].name, other.entries[i].hash)
                if slot < 0 or self.entries[slot].value != other.entries[i].value:
                    changed.add(<object>other.entries[i].name)
        self._drop()
        self._reserve(other.count)
        for i in range(other.count):
            slot = self._opened(other.entries[i].name, other.entries[i].hash)
            self.entries[slot].value = other.entries[i].value
        self.bound = other.bound
        if self.tracked:
            self._set_changed(changed)

    def clear(self):
        cdef set changed = set()
        if self.tracked:
            changed = self._changed() | set(self.names())
        self._drop()
        self.bound = 0.0
        if self.tracked:
            self._set_changed(changed)

    def track(self):
        if not self.tracked:
            self._flags(self.room)
            memset(self.dirty, 0, self.room)
            self.tracked = True
            self._set_changed(set())

    cdef int _set_changed(self, set changed) except -1:
        cdef int32_t slot
        if self.dirty != NULL:
            memset(self.dirty, 0, self.room)
        self.dirty_count = 0
        self.others = set()
        for name in changed:
            self._change(name)
        return 0

    cdef int _change(self, name) except -1:
        cdef int32_t slot = self._found(<PyObject *>name, hk_hash(<PyObject *>name))
        if slot >= 0:
            self._touch(slot)
        else:
            self.others.add(name)
        return 0

    def changed_count(self):
        return self.dirty_count + len(self.others) if self.tracked else 0

    def take_changed(self):
        if not self.tracked:
            self.track()
            return set()
        changed = self._changed()
        self._set_changed(set())
        return changed

    def put_back_changed(self, names):
        if self.tracked:
            for name in names:
                self._change(name)


cdef class View:
    """A live read-only mapping of what a vector stores."""

    cdef Storage vector

    def __init__(self, Storage vector):
        self.vector = vector

    def __len__(self):
        return self.vector.count

    def __contains__(self, name):
        return name in self.vector

    def __iter__(self):
        return iter(self.vector.names())

    def __reversed__(self):
        return reversed(self.vector.names())

    def __getitem__(self, name):
        return self.vector[name]

    def get(self, name, default=None):
        return self.vector.lookup(name, default)

    def keys(self):
        return KeysView(self)

    def values(self):
        return Values(self)

    def items(self):
        return Items(self)

    def copy(self):
        return self.vector.parts()[0]

    def pairs(self):
        return zip(self.vector.names(), self.vector.numbers())

    def numbers(self):
        return self.vector.numbers()

    def __eq__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        return self.copy() == dict(other)

    def __or__(self, other):
        return self.copy() | dict(other)

    def __ror__(self, other):
        return dict(other) | self.copy()

    def __repr__(self):
        return f"mappingproxy({self.copy()!r})"


class Values(ValuesView):
    __slots__ = ()

    def __iter__(self):
        return iter(self._mapping.numbers())


class Items(ItemsView):
    __slots__ = ()

    def __iter__(self):
        return self._mapping.pairs()


Mapping.register(View)


def norm_of(x):
    """Return the Euclidean norm of an event."""
    cdef Py_ssize_t at = 0
    cdef PyObject *name
    cdef PyObject *value
    cdef double total = 0.0, size
    if not PyDict_Check(x):
        return pure.norm_of(x)
    while PyDict_Next(x, &at, &name, &value):
        if PyFloat_Check(<object>value):
            size = PyFloat_AS_DOUBLE(<object>value)
        elif PyLong_Check(<object>value):
            size = PyLong_AsDouble(<object>value)
        else:
            return pure.norm_of(x)
        total += size * size
    return sqrt(total) if LEAST <= total < INFINITY else pure.norm_of(x)


def length(double a, double b):
    """Return the norm of two numbers."""
    cdef double[2] pair
    pair[0], pair[1] = a, b
    return norm(pair, 2)


def uncertainty(Storage variance, x):
    """Return `x . S x`, a variance never stored being 1."""
    cdef Event *event = gathered(x)
    cdef double total = 0.0, before
    cdef Py_ssize_t i
    try:
        variance._find(event)
        for i in range(event.count):
            before = variance.entries[event.slots[i]].value if event.slots[i] >= 0 else 1.0
            total += before * event.values[i] * event.values[i]
    finally:
        released(event)
    return total


def add_by_confidence(
    Storage weights, Storage variance, x, double step, double beta, double forgetting
):
    """Add `step S x`, which must fit, and lower the variances."""
    cdef Event *event
    cdef double before, product, left
    cdef Py_ssize_t i
    cdef int32_t slot
    if not weights.plain:
        pure.add_by_confidence(weights, variance, x, step, beta, forgetting)
        return
    event = gathered(x)
    try:
        weights._find(event)
        for i in range(event.count):
            slot = variance._beside(weights, event, i)
            before = variance.entries[slot].value if slot >= 0 else 1.0
            product = before * event.values[i]
            left = before - beta * product * product
            if not left > 0.0:
                left = 0.0
            if forgetting > 0.0:
                left = left / (1.0 - forgetting + forgetting * left)
            if event.slots[i] < 0:
                event.slots[i] = weights._opened(event.names[i], event.hashes[i])
            weights._touch(event.slots[i])
            weights.entries[event.slots[i]].value += step * product
            if slot < 0:
                slot = variance._opened(event.names[i], event.hashes[i])
            variance._touch(slot)
            variance.entries[slot].value = left
    finally:
        released(event)


cdef bint stored(tuple vectors, Event *event) except -1:
    """Store the results if all are finite."""
    cdef Py_ssize_t i, part
    cdef Storage vector, first = vectors[0]
    for part in range(len(vectors)):
        for i in range(event.count):
            if not isfinite(event.results[part * event.room + i]):
                return False
    for part in range(len(vectors)):
        vector = vectors[part]
        vector._set(first, event, part)
    return True


def add_adaptively(Storage weights, Storage squares, x, double rate, double target, double w):
    """Take AdaGrad's step on every weight of `x`, or none if a number would not be finite."""
    cdef Event *event
    cdef double gradient, square, weight
    cdef Py_ssize_t i
    if not weights.plain:
        return pure.add_adaptively(weights, squares, x, rate, target, w)
    event = gathered(x)
    try:
        weights._find(event)
        for i in range(event.count):
            gradient = w * event.values[i]
            square = squares._value(weights, event, i) + gradient * gradient
            weight = weights._value(weights, event, i)
            if square > 0.0:
                weight += rate / sqrt(square) * target * gradient
            event.results[i] = weight
            event.results[event.room + i] = square
        return stored((weights, squares), event)
    finally:
        released(event)


def add_logistic(Storage weights, Storage squares, x, double slope, double rate, decay):
    """Take a step of `LogisticSGD` on every weight, or none if a number would not be finite."""
    cdef Event *event
    cdef double gradient, square, weight, kept = 0.0 if decay is None else decay
    cdef bint rms = decay is not None
    cdef Py_ssize_t i
    if not weights.plain:
        return pure.add_logistic(weights, squares, x, slope, rate, decay)
    event = gathered(x)
    try:
        weights._find(event)
        for i in range(event.count):
            gradient = slope * event.values[i]
            square = squares._value(weights, event, i)
            weight = weights._value(weights, event, i)
            if gradient != 0.0:
                if rms:
                    square = kept * square + (1.0 - kept) * (gradient * gradient)
                else:
                    square += gradient * gradient
                weight = weight - rate / sqrt(square + EPSILON) * gradient
            event.results[i] = weight
            event.results[event.room + i] = square
        return stored((weights, squares), event)
    finally:
        released(event)


def add_proximally(tuple vectors, x, double slope, start_of, tuple parameters):
    """Take a step of `FTRLProximal` on every weight, or none if a number would not be finite."""
    cdef Event *event
    cdef Storage weights = vectors[0], sums = vectors[1], squares = vectors[2]
    cdef double rate = parameters[0], beta = parameters[1], l1 = parameters[2], l2 = parameters[3]
    cdef double gradient, weight, total, square, root, grown, divisor
    cdef Py_ssize_t i
    if start_of is not None:
        return pure.add_proximally(vectors, x, slope, start_of, parameters)
    event = gathered(x)
    try:
        weights._find(event)
        for i in range(event.count):
            gradient = slope * event.values[i]
            weight = weights._value(weights, event, i)
            total = sums._value(weights, event, i)
            square = squares._value(weights, event, i)
            if gradient != 0.0:
                root = sqrt(square)
                square += gradient * gradient
                grown = sqrt(square)
                total += gradient - (grown - root) / rate * weight
                weight = 0.0
                divisor = (beta + grown) / rate + l2
                if not fabs(total) <= l1 and divisor > 0.0:
                    weight += (copysign(l1, total) - total) / divisor
            event.results[i] = weight
            event.results[event.room + i] = total
            event.results[2 * event.room + i] = square
        return stored(vectors, event)
    finally:
        released(event)


def add_by_betting(tuple vectors, x, double slope, double w, start_of):
    """Bet on every weight of `x`, or on none if a number would not be finite."""
    cdef Event *event
    cdef Storage weights = vectors[0], sums = vectors[1], scales = vectors[2]
    cdef Storage sizes = vectors[3], rewards = vectors[4]
    cdef double coin, most, weight, total, scale, size, reward
    cdef Py_ssize_t i
    if start_of is not None:
        return pure.add_by_betting(vectors, x, slope, w, start_of)
    event = gathered(x)
    try:
        weights._find(event)
        for i in range(event.count):
            coin = slope * event.values[i]
            most = w * fabs(event.values[i])
            weight = weights._value(weights, event, i)
            total = sums._value(weights, event, i)
            scale = scales._value(weights, event, i)
            size = sizes._value(weights, event, i)
            reward = rewards._value(weights, event, i)
            if coin != 0.0:
                if most > scale:
                    scale = most
                size += fabs(coin)
                reward = reward + coin * weight
                if not reward > 0.0:
                    reward = 0.0
                total += coin
                weight = 0.0 + total / (size + scale) * ((1.0 + reward) / scale)
            event.results[i] = weight
            event.results[event.room + i] = total
            event.results[2 * event.room + i] = scale
            event.results[3 * event.room + i] = size
            event.results[4 * event.room + i] = reward
        return stored(vectors, event)
    finally:
        released(event)


def shrunk_dot(Storage weights, Storage marks, x, double log_shrink, list found):
    """Return `w . x` of weights that are shrunk since their marks, and append these to a list."""
    cdef Event *event = gathered(x)
    cdef double total = 0.0, weight, mark
    cdef Py_ssize_t i
    cdef int32_t slot
    try:
        weights._find(event)
        for i in range(event.count):
            weight = 0.0
            if event.slots[i] >= 0:
                slot = marks._beside(weights, event, i)
                mark = marks.entries[slot].value if slot >= 0 else log_shrink
                weight = weights.entries[event.slots[i]].value * exp(log_shrink - mark)
            found.append(weight)
            total += weight * event.values[i]
    finally:
        released(event)
    return total


def add_shrunk(tuple vectors, x, list before, double shrink, double step, double mark):
    """Set the weights to `shrink` times those before, plus `step x`, which fits; mark them."""
    cdef Event *event = gathered(x)
    cdef Storage weights = vectors[0], marks = vectors[1]
    cdef double weight
    cdef Py_ssize_t i
    cdef int32_t slot
    try:
        if len(before) != event.count:
            raise ValueError("a weight for each name")
        weights._find(event)
        weights._open(event)
        for i in range(event.count):
            weight = before[i]
            weights.entries[event.slots[i]].value = shrink * weight + step * event.values[i]
            slot = marks._beside(weights, event, i)
            if slot < 0:
                slot = marks._opened(event.names[i], event.hashes[i])
            marks._touch(slot)
            marks.entries[slot].value = mark
    finally:
        released(event)

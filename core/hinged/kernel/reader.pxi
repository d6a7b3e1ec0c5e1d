# Reader: events of plain JSON, from their bytes to names and doubles, with no object for a value.
#
# Plain are objects of the fields x, y, w and id, each once at most, with names and texts without
# escapes, and with labels that are true, false, integers or text. All other text, and all
# faults, are left to the decoder of the caller: nothing here says why.

cdef enum:
    MOST_NAMES = 10000  # of an event

cdef struct Read:
    Py_ssize_t names_at, values_at, count
    Py_ssize_t start, end  # of the features in their text
    PyObject *y  # owned, as is
    PyObject *id  # which may be NULL
    double w


@cython.final
@cython.no_gc
cdef class Reading:
    """The events of some texts; an event of the very names of the one before shares them."""

    cdef KnownNames known
    cdef PyObject **names  # of `known`
    cdef Py_hash_t *hashes
    cdef int32_t *numbers
    cdef const char **texts  # of the names, while texts are read
    cdef int32_t *sizes
    cdef const char *text
    cdef double *values
    cdef Read *events
    cdef Py_ssize_t names_count, names_room, values_count, values_room, count, room
    cdef bint labelled

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            Py_XDECREF(self.events[i].y)
            Py_XDECREF(self.events[i].id)
        PyMem_Free(self.names)
        PyMem_Free(self.hashes)
        PyMem_Free(self.numbers)
        PyMem_Free(self.values)
        PyMem_Free(self.events)
        self._end()

    cdef void _end(self) noexcept:
        PyMem_Free(self.texts)
        PyMem_Free(self.sizes)
        self.texts, self.sizes = NULL, NULL

    cdef int _widen(self, Py_ssize_t names) except -1:
        """Make room for so many more names."""
        cdef Py_ssize_t room = self.names_count + names
        if room <= self.names_room:
            return 0
        room += room // 2 + 64
        self.names = <PyObject **>wider(self.names, room * sizeof(PyObject *))
        self.hashes = <Py_hash_t *>wider(self.hashes, room * sizeof(Py_hash_t))
        self.numbers = <int32_t *>wider(self.numbers, room * sizeof(int32_t))
        self.texts = <const char **>wider(self.texts, room * sizeof(char *))
        self.sizes = <int32_t *>wider(self.sizes, room * sizeof(int32_t))
        self.names_room = room
        return 0

    cdef const char *_features(self, const char *p, const char *end, Read *event) except? NULL:
        """Read the names and values of an event."""
        cdef const char *text
        cdef Py_ssize_t size, same_at = 0, same_count = 0, k = 0
        cdef bint same = self.count > 0
        if same:
            same_at = self.events[self.count - 1].names_at
            same_count = self.events[self.count - 1].count
        event.names_at, event.values_at = self.names_count, self.values_count
        event.start = p - self.text
        if p[0] != c"{":
            return NULL
        p = past_space(p + 1)
        while p[0] != c"}":
            if k:
                if p[0] != c",":
                    return NULL
                p = past_space(p + 1)
            if p[0] != c'"' or k == MOST_NAMES:
                return NULL
            p += 1
            if same:
                same = False
                if k < same_count:
                    size = self.sizes[same_at + k]
                    same = (
                        end - p > size
                        and p[size] == c'"'
                        and memcmp(p, self.texts[same_at + k], size) == 0
                    )
                if not same:
                    self._repeat(same_at, k)
            if same:
                p += size
            else:
                text = p
                p = past_text(p)
                if p == NULL:
                    return NULL
                self._add(text, p - text)
            p = past_space(p + 1)
            if p[0] != c":":
                return NULL
            if self.values_count == self.values_room:
                self.values_room += self.values_room // 2 + 256
                self.values = <double *>wider(self.values, self.values_room * sizeof(double))
            p = number_at(past_space(p + 1), &self.values[self.values_count])
            if p == NULL:
                return NULL
            self.values_count += 1
            k += 1
            p = past_space(p)
        event.count, event.end = k, p + 1 - self.text
        if event.names_at == self.names_count:  # no name differs, but there may be fewer
            event.names_at = same_at
        elif not self._found(event.names_at):
            return NULL
        return p + 1

    cdef int _repeat(self, Py_ssize_t at, Py_ssize_t count) except -1:
        """Add so many names of the event before."""
        cdef Py_ssize_t i
        for i in range(at, at + count):
            self._add(self.texts[i], self.sizes[i])
        return 0

    cdef inline int _add(self, const char *text, Py_ssize_t size) except -1:
        """Add the text of a name, to be found together with the others of its event."""
        cdef Py_ssize_t at = self.names_count
        cdef uint32_t mark
        self._widen(1)
        if size > MOST_BYTES:
            size = MOST_BYTES + 1
        mark = mark_of(text, size)
        HK_PREFETCH(&self.known.table[mark & <uint32_t>self.known.mask])
        self.texts[at], self.sizes[at], self.numbers[at] = text, <int32_t>size, <int32_t>mark
        self.names_count += 1
        return 0

    cdef bint _found(self, Py_ssize_t first) except -1:
        """Find the names from one on; return whether all are plain and different."""
        cdef KnownNames names = self.known
        cdef Known *known
        cdef Py_ssize_t i
        names.event += 1
        for i in range(first, self.names_count):
            known = names.find(self.texts[i], self.sizes[i], <uint32_t>self.numbers[i])
            if known == NULL or names.events[known.number] == names.event:
                return False
            names.events[known.number] = names.event
            self.names[i], self.hashes[i], self.numbers[i] = known.name, known.hash, known.number
        return True

    cdef const char *_event(self, const char *p, const char *end) except? NULL:
        """Read an event; return what is behind it, NULL for one that is not plain."""
        cdef Read *event
        cdef bint has_x = False, has_w = False
        cdef char field
        cdef const char *text
        if self.count == self.room:
            self.room += self.room // 2 + 8
            self.events = <Read *>wider(self.events, self.room * sizeof(Read))
        event = &self.events[self.count]
        event.y = event.id = NULL
        event.w = 1.0
        event.count = 0
        try:
            if p[0] != c"{":
                return NULL
            p = past_space(p + 1)
            while True:
                if p[0] != c'"':
                    return NULL
                field = p[1]
                if field == c"i":
                    p += 1
                    if p[1] != c"d":
                        return NULL
                if field == 0 or p[2] != c'"':
                    return NULL
                p = past_space(p + 3)
                if p[0] != c":":
                    return NULL
                p = past_space(p + 1)
                if field == c"x" and not has_x:
                    has_x = True
                    p = self._features(p, end, event)
                elif field == c"y" and event.y == NULL and self.labelled:
                    p = self._label(p, event)
                elif field == c"w" and not has_w and self.labelled:
                    has_w = True
                    if p[0] == c"-":
                        return NULL
                    p = number_at(p, &event.w)
                elif field == c"i" and event.id == NULL and p[0] == c'"':
                    text = p + 1
                    p = past_text(text)
                    if p == NULL or p == text or p - text > MOST_BYTES:
                        return NULL
                    name = PyUnicode_DecodeUTF8(text, p - text, NULL)
                    if len(<str>name) > MOST_CHARACTERS:
                        return NULL
                    Py_INCREF(name)
                    event.id = <PyObject *>name
                    p += 1
                else:
                    return NULL
                if p == NULL:
                    return NULL
                p = past_space(p)
                if p[0] == c"}":
                    break
                if p[0] != c",":
                    return NULL
                p = past_space(p + 1)
            return p + 1 if has_x and (event.y != NULL or not self.labelled) else NULL
        finally:
            self.count += 1  # from here on it is this object that lets go of its parts

    cdef const char *_label(self, const char *p, Read *event) except? NULL:
        cdef const char *text = p
        cdef Py_ssize_t size
        cdef Known *known
        cdef object y
        if p[0] == c'"':
            p = past_text(p + 1)
            if p == NULL:
                return NULL
            size = p - text - 1
            known = self.known.find(text + 1, size, mark_of(text + 1, size))
            if known == NULL:
                return NULL
            y = <object>known.name
            p += 1
        elif p[0] == c"t" and p[1] == c"r" and p[2] == c"u" and p[3] == c"e":
            y = True
            p += 4
        elif p[0] == c"f" and p[1] == c"a" and p[2] == c"l" and p[3] == c"s" and p[4] == c"e":
            y = False
            p += 5
        else:
            p += p[0] == c"-"
            if p[0] == c"0" and is_digit(p[1]):
                return NULL
            while is_digit(p[0]):
                p += 1
            if not is_digit((p - 1)[0]) or p - text > 18 or p[0] == c"." or (p[0] | 32) == c"e":
                return NULL
            y = whole_number(text, p)
        Py_INCREF(y)
        event.y = <PyObject *>y
        return p

    cdef list _made(self, kind):
        cdef Py_ssize_t i
        cdef Read *event
        cdef ReadFeatures x
        cdef list made = []
        for i in range(self.count):
            event = &self.events[i]
            x = ReadFeatures.__new__(ReadFeatures)
            x.reading = self
            x.names_at, x.count = event.names_at, event.count
            x.first_name, x.first_value = self.names + x.names_at, self.values + event.values_at
            x.start, x.end = event.start, event.end
            if not self.labelled:
                made.append(kind(x) if event.id == NULL else kind(x, <object>event.id))
            elif event.id != NULL:
                made.append(kind(x, <object>event.y, event.w, <object>event.id))
            elif event.w != 1.0:
                made.append(kind(x, <object>event.y, event.w))
            else:
                made.append(kind(x, <object>event.y))
        return made


def read_events(texts, kind, bint labelled):
    """Return events of plain JSON, `None` if any of it is not: see `hinged.kernel.pure`."""
    global known_names
    cdef Reading reading = Reading()
    cdef const char *p
    cdef const char *end
    cdef bytes text
    reading.labelled = labelled
    if known_names.is_full():
        known_names = KnownNames()
    reading.known = known_names
    try:
        if type(texts) is bytes:
            text = texts
            p = reading.text = text
            end = p + len(text)
            p = past_space(p)
            if p[0] != c"[":
                return None
            while p[0] == c"[" or p[0] == c",":
                p = reading._event(past_space(p + 1), end)
                if p == NULL:
                    return None
                p = past_space(p)
                if p[0] == c"[":
                    return None
            if p[0] != c"]" or past_space(p + 1) != end:
                return None
        else:
            for text in <list>texts:
                p = reading.text = text
                end = p + len(text)
                p = reading._event(past_space(p), end)
                if p == NULL or past_space(p) != end:
                    return None
    except UnicodeDecodeError:
        return None
    reading._end()
    return reading._made(kind)


@cython.no_gc
cdef class Features:
    """Names and numbers in C as a mapping; its dictionary is made at its first use."""

    cdef PyObject **first_name
    cdef double *first_value
    cdef Py_ssize_t count
    cdef dict found

    cdef dict _dict(self):
        cdef Py_ssize_t i
        if self.found is None:
            self.found = {<object>self.first_name[i]: self.first_value[i] for i in range(self.count)}
        return self.found

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter(self._dict())

    def __contains__(self, name):
        return name in self._dict()

    def __getitem__(self, name):
        return self._dict()[name]

    def get(self, name, default=None):
        return self._dict().get(name, default)

    def keys(self):
        return self._dict().keys()

    def values(self):
        return self._dict().values()

    def items(self):
        return self._dict().items()

    def __eq__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        return self._dict() == dict(other)

    def __reduce__(self):
        return dict, (self._dict(),)

    def __repr__(self):
        return repr(self._dict())


Mapping.register(Features)


@cython.final
@cython.no_gc
cdef class ReadFeatures(Features):
    """The features of an event that was read: a mapping, gathered already."""

    cdef Reading reading  # which has the names and numbers
    cdef Py_ssize_t names_at, start, end

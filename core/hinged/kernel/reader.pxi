# Reader: events of plain JSON, from their bytes to names and doubles, with no object for a value.
#
# Plain are objects of the fields x, y, w and id, each once at most, with names and texts without
# escapes, and with labels that are true, false, integers or text. All other text, and all
# faults, are left to the decoder of the caller: nothing here says why.

cdef enum:
    MOST_NAMES = 10000  # of an event
    FEW_BYTES = 16384  # below, letting go of the lock costs more than it gives

cdef enum Label:
    NO_LABEL
    FALSE_LABEL
    TRUE_LABEL
    WHOLE_LABEL
    TEXT_LABEL

cdef struct Text:
    const char *start
    Py_ssize_t size

cdef struct Read:
    Py_ssize_t names_at, values_at, count
    Py_ssize_t start, end  # of the features in their text
    Label label
    long long whole  # the label
    PyObject *name  # the label, of `known`
    Text id  # starts at NULL if there is none
    double w


@cython.final
@cython.no_gc
cdef class Reading:
    """The events of some texts; an event of the very names of the one before shares them."""

    cdef KnownNames known
    cdef Known *table  # of `known`, as it was last looked at under the lock
    cdef Py_ssize_t mask
    cdef uint32_t *last_events  # by the number of a name: the last event that has it
    cdef uint32_t event
    cdef PyObject **names  # of `known`
    cdef Py_hash_t *hashes
    cdef int32_t *numbers
    cdef const char **texts  # of the names, while texts are read
    cdef int32_t *sizes
    cdef const char *text
    cdef double *values
    cdef Read *events
    cdef Py_ssize_t names_count, names_room, values_count, values_room, count, room
    cdef bint labelled, locked

    def __cinit__(self, KnownNames known, bint labelled, bint locked):
        self.known, self.labelled, self.locked = known, labelled, locked
        if locked:
            self.last_events, self.event = known.events, known.event
        else:
            self.last_events = <uint32_t *>PyMem_Calloc(MOST_KNOWN, sizeof(uint32_t))
            if self.last_events == NULL:
                raise MemoryError
        known.readers += 1
        self._look()

    def __dealloc__(self):
        self._end()
        PyMem_Free(self.names)
        PyMem_Free(self.hashes)
        PyMem_Free(self.numbers)
        PyMem_Free(self.values)
        PyMem_Free(self.events)

    cdef void _look(self) noexcept:
        self.table, self.mask = self.known.table, self.known.mask

    cdef void _end(self) noexcept:
        """Let go of what is needed only while texts are read."""
        if self.last_events == NULL:
            return
        if self.locked:
            self.known.event = self.event
        else:
            PyMem_Free(self.last_events)
        self.known.end_reader()
        PyMem_Free(self.texts)
        PyMem_Free(self.sizes)
        self.last_events, self.texts, self.sizes = NULL, NULL, NULL

    cdef int _widen(self, Py_ssize_t names) except -1 nogil:
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

    cdef Known *_known(
        self, const char *text, Py_ssize_t size, uint32_t mark
    ) except? NULL nogil:
        """Return a name of some bytes, made if it is not known; NULL if it is not plain."""
        cdef bint found
        cdef Known *known = look_up(self.table, self.mask, text, size, mark, &found)
        if known == NULL or found:
            return known
        with gil:
            known = self.known.find(text, size, mark)
            self._look()
        return known

    cdef const char *_features(
        self, const char *p, const char *end, Read *event
    ) except? NULL nogil:
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

    cdef int _repeat(self, Py_ssize_t at, Py_ssize_t count) except -1 nogil:
        """Add so many names of the event before."""
        cdef Py_ssize_t i
        for i in range(at, at + count):
            self._add(self.texts[i], self.sizes[i])
        return 0

    cdef inline int _add(self, const char *text, Py_ssize_t size) except -1 nogil:
        """Add the text of a name, to be found together with the others of its event."""
        cdef Py_ssize_t at = self.names_count
        cdef uint32_t mark
        self._widen(1)
        if size > MOST_BYTES:
            size = MOST_BYTES + 1
        mark = mark_of(text, size)
        HK_PREFETCH(&self.table[mark & <uint32_t>self.mask])
        self.texts[at], self.sizes[at], self.numbers[at] = text, <int32_t>size, <int32_t>mark
        self.names_count += 1
        return 0

    cdef bint _found(self, Py_ssize_t first) except -1 nogil:
        """Find the names from one on; return whether all are plain and different."""
        cdef Known *known
        cdef Py_ssize_t i
        self.event += 1
        for i in range(first, self.names_count):
            known = self._known(self.texts[i], self.sizes[i], <uint32_t>self.numbers[i])
            if known == NULL or self.last_events[known.number] == self.event:
                return False
            self.last_events[known.number] = self.event
            self.names[i], self.hashes[i], self.numbers[i] = known.name, known.hash, known.number
        return True

    cdef const char *_event(self, const char *p, const char *end) except? NULL nogil:
        """Read an event; return what is behind it, NULL for one that is not plain."""
        cdef Read *event
        cdef bint has_x = False, has_w = False
        cdef char field
        if self.count == self.room:
            self.room += self.room // 2 + 8
            self.events = <Read *>wider(self.events, self.room * sizeof(Read))
        event = &self.events[self.count]
        event.label, event.id.start = NO_LABEL, NULL
        event.w = 1.0
        event.count = 0
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
            elif field == c"y" and event.label == NO_LABEL and self.labelled:
                p = self._label(p, event)
            elif field == c"w" and not has_w and self.labelled:
                has_w = True
                if p[0] == c"-":
                    return NULL
                p = number_at(p, &event.w)
            elif field == c"i" and event.id.start == NULL and p[0] == c'"':
                event.id.start = p + 1
                p = past_text(p + 1)
                if p == NULL:
                    return NULL
                event.id.size = p - event.id.start
                if not 0 < event.id.size <= MOST_BYTES:
                    return NULL
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
        if not has_x or (event.label == NO_LABEL and self.labelled):
            return NULL
        self.count += 1
        return p + 1

    cdef const char *_label(self, const char *p, Read *event) except? NULL nogil:
        cdef const char *text = p
        cdef Py_ssize_t size
        cdef Known *known
        if p[0] == c'"':
            p = past_text(p + 1)
            if p == NULL:
                return NULL
            size = p - text - 1
            known = self._known(text + 1, size, mark_of(text + 1, size))
            if known == NULL:
                return NULL
            event.label, event.name = TEXT_LABEL, known.name
            return p + 1
        if p[0] == c"t" and p[1] == c"r" and p[2] == c"u" and p[3] == c"e":
            event.label = TRUE_LABEL
            return p + 4
        if p[0] == c"f" and p[1] == c"a" and p[2] == c"l" and p[3] == c"s" and p[4] == c"e":
            event.label = FALSE_LABEL
            return p + 5
        p += p[0] == c"-"
        if p[0] == c"0" and is_digit(p[1]):
            return NULL
        while is_digit(p[0]):
            p += 1
        if not is_digit((p - 1)[0]) or p - text > 18 or p[0] == c"." or (p[0] | 32) == c"e":
            return NULL
        event.label, event.whole = WHOLE_LABEL, whole_number(text, p)
        return p

    cdef bint _read_array(self, const Text *text) except -1 nogil:
        """Read a text that is one array; return whether all of it is plain."""
        cdef const char *p = past_space(text.start)
        cdef const char *end = text.start + text.size
        self.text = text.start
        if p[0] != c"[":
            return False
        while p[0] == c"[" or p[0] == c",":
            p = self._event(past_space(p + 1), end)
            if p == NULL:
                return False
            p = past_space(p)
            if p[0] == c"[":
                return False
        return p[0] == c"]" and past_space(p + 1) == end

    cdef bint _read_each(self, const Text *texts, Py_ssize_t count) except -1 nogil:
        """Read texts of one event each; return whether all are plain."""
        cdef const char *p
        cdef const char *end
        cdef Py_ssize_t i
        for i in range(count):
            self.text = texts[i].start
            end = self.text + texts[i].size
            p = self._event(past_space(self.text), end)
            if p == NULL or past_space(p) != end:
                return False
        return True

    cdef list _made(self, kind):
        """Return the events; `None` if an id is not plain."""
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
            name = None
            if event.id.start != NULL:
                name = PyUnicode_DecodeUTF8(event.id.start, event.id.size, NULL)
                if len(<str>name) > MOST_CHARACTERS:
                    return None
            if not self.labelled:
                made.append(kind(x) if name is None else kind(x, name))
            elif name is not None:
                made.append(kind(x, label_of(event), event.w, name))
            elif event.w != 1.0:
                made.append(kind(x, label_of(event), event.w))
            else:
                made.append(kind(x, label_of(event)))
        return made


cdef object label_of(const Read *event):
    if event.label == WHOLE_LABEL:
        return event.whole
    return <object>event.name if event.label == TEXT_LABEL else event.label == TRUE_LABEL


def read_events(texts, kind, bint labelled):
    """Return events of plain JSON, `None` if any of it is not: see `hinged.kernel.pure`."""
    global known_names
    cdef Reading reading
    cdef bint is_array = type(texts) is bytes, plain
    cdef list held = [texts] if is_array else list(texts)  # another thread may change a list
    cdef Py_ssize_t i, count = len(held), size = 0
    cdef bytes text
    cdef Text *each = <Text *>wider(NULL, count * sizeof(Text) + 1)
    try:
        for i in range(count):
            text = held[i]
            each[i].start, each[i].size = text, len(text)
            size += each[i].size
        if known_names.is_full():
            known_names = KnownNames()
        reading = Reading(known_names, labelled, size < FEW_BYTES)
        if reading.locked:
            plain = reading._read_array(each) if is_array else reading._read_each(each, count)
        else:
            with nogil:
                plain = reading._read_array(each) if is_array else reading._read_each(each, count)
        reading._end()
        return reading._made(kind) if plain else None
    except UnicodeDecodeError:
        return None
    finally:
        PyMem_Free(each)


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

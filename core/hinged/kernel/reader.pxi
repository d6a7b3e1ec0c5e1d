# Reader: events of plain JSON, from their bytes to names and doubles, with no object for a value.
#
# Plain are objects of the fields x, y, w and id, each once at most, with names and texts without
# escapes, and with labels that are true, false, integers or text. Whatever else there is, and all
# that is wrong, is left to the decoder of the caller: nothing here says why.

cdef extern from *:
    """
    /* The double next to m 10^power, for m > 0 and a power of -27 to 27: 5^27 is below 2^63, so
       product and quotient are exact up to a last bit that tells whether anything is left. */
    static double hk_scaled(uint64_t m, int power) {
        static const uint64_t fives[28] = {
            1ULL, 5ULL, 25ULL, 125ULL, 625ULL, 3125ULL, 15625ULL, 78125ULL, 390625ULL,
            1953125ULL, 9765625ULL, 48828125ULL, 244140625ULL, 1220703125ULL, 6103515625ULL,
            30517578125ULL, 152587890625ULL, 762939453125ULL, 3814697265625ULL,
            19073486328125ULL, 95367431640625ULL, 476837158203125ULL, 2384185791015625ULL,
            11920928955078125ULL, 59604644775390625ULL, 298023223876953125ULL,
            1490116119384765625ULL, 7450580596923828125ULL,
        };
        unsigned __int128 wide;
        uint64_t top, scale_bits;
        double scale;
        int up = __builtin_clzll(m), exponent = power - up, left;
        m <<= up;
        if (power >= 0) {
            wide = (unsigned __int128)m * fives[power];
            if (!(wide >> 64)) {
                wide <<= 64;
                exponent -= 64;
            }
            up = __builtin_clzll((uint64_t)(wide >> 64));
            wide <<= up;
            exponent += 64 - up;
            top = (uint64_t)(wide >> 64);
            left = (uint64_t)wide != 0;
        } else {
            uint64_t divisor = fives[-power];
            up = __builtin_clzll(divisor);
            divisor <<= up;
            exponent += up - 63;
            wide = (unsigned __int128)m << 63;
            top = (uint64_t)(wide / divisor);
            left = wide != (unsigned __int128)top * divisor;
            if (!(top >> 63)) {
                top <<= 1;
                exponent -= 1;
            }
        }
        m = top >> 11;
        top &= 0x7FF;
        if (top > 0x400 || (top == 0x400 && (left || (m & 1)))) m += 1;
        scale_bits = (uint64_t)(exponent + 11 + 1023) << 52;
        memcpy(&scale, &scale_bits, sizeof scale);
        return (double)m * scale;
    }
    """
    double hk_scaled(uint64_t m, int power) noexcept

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL
    double PyOS_string_to_double(const char *, char **, PyObject *) except? -1.0
    void *PyMem_Calloc(size_t, size_t) noexcept

cdef enum:
    MOST_KNOWN = 65536  # names, and
    MOST_KNOWN_BYTES = 4194304  # bytes of them, of one table
    MOST_PROBES = 128
    MOST_NAMES = 10000  # of an event
    MOST_CHARACTERS = 256  # of a name or id
    MOST_BYTES = 1024  # of these in UTF-8
    MOST_DIGITS = 400  # bytes of a number
    LINE = 64
    KEPT_TEXT = 36

cdef double MOST_SIZE = 1e100
cdef double[23] TENS
for _power in range(23):
    TENS[_power] = 10.0 ** _power
cdef uint64_t seed = int.from_bytes(urandom(8), "little")

cdef struct Known:  # as long as a cache line
    PyObject *name  # owned; NULL if the place is free
    Py_hash_t hash
    uint32_t mark
    int32_t number, size
    char[KEPT_TEXT] text  # its beginning

cdef struct Read:
    Py_ssize_t names_at, values_at, count
    PyObject *y  # owned, as is
    PyObject *id  # which may be NULL
    double w


cdef inline bint is_digit(char sign) noexcept:
    return c"0" <= sign <= c"9"


cdef inline const char *past_space(const char *p) noexcept:
    while p[0] == c" " or p[0] == c"\n" or p[0] == c"\r" or p[0] == c"\t":
        p += 1
    return p


cdef inline const char *past_text(const char *p) noexcept:
    """Return where the closing mark of a text stands, NULL for one that is not plain."""
    while p[0] != c'"':
        if <uint8_t>p[0] < 32 or p[0] == c"\\":
            return NULL
        p += 1
    return p


cdef inline uint32_t mark_of(const char *text, Py_ssize_t size) noexcept:
    """Return a hash that only this process knows."""
    cdef uint64_t mixed = seed ^ <uint64_t>size, word
    while size >= 8:
        memcpy(&word, text, 8)
        mixed = (mixed ^ word) * <uint64_t>0x9E3779B97F4A7C15
        mixed ^= mixed >> 32
        text += 8
        size -= 8
    word = 0
    if size >= 4:
        memcpy(&word, text, 4)
        text += 4
        size -= 4
        mixed = (mixed ^ word) * <uint64_t>0x9E3779B97F4A7C15
        mixed ^= mixed >> 32
        word = 0
    while size > 0:
        word = word << 8 | <uint8_t>text[0]
        text += 1
        size -= 1
    mixed = (mixed ^ word) * <uint64_t>0x9E3779B97F4A7C15
    return <uint32_t>(mixed >> 32)


cdef const char *number_at(const char *p, double *value) except? NULL:
    """Read a number of JSON; return what is behind it, NULL for one that is not plain."""
    cdef const char *start = p
    cdef const char *part
    cdef char *stop
    cdef uint64_t m = 0
    cdef int digits = 0, power = 0, exponent = 0
    cdef bint negative = p[0] == c"-", less, whole = True
    p += negative
    if p[0] == c"0":
        p += 1
    elif is_digit(p[0]):
        while is_digit(p[0]):
            m = m * 10 + <uint64_t>(p[0] - c"0")
            digits += 1
            p += 1
    else:
        return NULL
    if p[0] == c".":
        whole = False
        p += 1
        part = p
        while is_digit(p[0]):
            m = m * 10 + <uint64_t>(p[0] - c"0")
            digits += m != 0
            p += 1
        if p == part:
            return NULL
        if p - start > MOST_DIGITS:
            return NULL
        power = -<int>(p - part)
    if p[0] == c"e" or p[0] == c"E":
        whole = False
        p += 1
        less = p[0] == c"-"
        if less or p[0] == c"+":
            p += 1
        if not is_digit(p[0]):
            return NULL
        while is_digit(p[0]):
            if exponent < 100000:
                exponent = exponent * 10 + (p[0] - c"0")
            p += 1
        power += -exponent if less else exponent
    if p - start > MOST_DIGITS:
        return NULL
    if digits > 19 or (m != 0 and not -27 <= power <= 27):
        value[0] = PyOS_string_to_double(start, &stop, NULL)
        return p if stop == p and -MOST_SIZE <= value[0] <= MOST_SIZE else NULL
    if m == 0:
        value[0] = 0.0
    elif m <= <uint64_t>1 << 53 and -22 <= power <= 22:
        value[0] = <double>m / TENS[-power] if power < 0 else <double>m * TENS[power]
    else:
        value[0] = hk_scaled(m, power)
    if negative and not (whole and m == 0):  # the integer -0 is 0
        value[0] = -value[0]
    return p


@cython.final
cdef class KnownNames:
    """The names that were read, by their bytes; it is filled up, and then another one begun."""

    cdef void *block
    cdef Known *table
    cdef Py_ssize_t mask, count, size
    cdef int32_t *slots  # by the number of a name: its entry in the vector that was looked at last
    cdef uint32_t *events  # by that number: the last event that has it
    cdef uint32_t event

    def __cinit__(self):
        self.slots = <int32_t *>PyMem_Calloc(MOST_KNOWN, sizeof(int32_t))
        self.events = <uint32_t *>PyMem_Calloc(MOST_KNOWN, sizeof(uint32_t))
        if self.slots == NULL or self.events == NULL:
            raise MemoryError
        self._widen(1024)

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.table != NULL:
            for i in range(self.mask + 1):
                Py_XDECREF(self.table[i].name)
        PyMem_Free(self.block)
        PyMem_Free(self.slots)
        PyMem_Free(self.events)

    cdef bint is_full(self) noexcept:
        """Return whether another one should be begun before anything is read."""
        return (
            self.count > MOST_KNOWN // 2
            or self.size > MOST_KNOWN_BYTES // 2
            or self.event > 0x7FFFFFFF
        )

    cdef int _widen(self, Py_ssize_t room) except -1:
        cdef void *block = PyMem_Calloc(room + 1, sizeof(Known))
        cdef Known *table
        cdef Py_ssize_t i, at
        if block == NULL:
            raise MemoryError
        table = <Known *>((<size_t>block + LINE - 1) & ~<size_t>(LINE - 1))
        if self.table != NULL:
            for i in range(self.mask + 1):
                if self.table[i].name != NULL:
                    at = self.table[i].mark & <uint32_t>(room - 1)
                    while table[at].name != NULL:
                        at = (at + 1) & (room - 1)
                    table[at] = self.table[i]
        PyMem_Free(self.block)
        self.block, self.table, self.mask = block, table, room - 1
        return 0

    cdef Known *find(self, const char *text, Py_ssize_t size, uint32_t mark) except? NULL:
        """Return a name of some bytes, which is made if it is not known; NULL if it is not plain."""
        cdef Py_ssize_t at = mark & <uint32_t>self.mask, probe, kept
        cdef Known *known
        for probe in range(MOST_PROBES):
            known = &self.table[at]
            if known.name == NULL:
                break
            if known.mark == mark and known.size == size:
                kept = size if size < KEPT_TEXT else KEPT_TEXT
                if memcmp(known.text, text, kept) == 0 and (
                    size == kept
                    or memcmp(PyUnicode_AsUTF8AndSize(<object>known.name, NULL), text, size) == 0
                ):
                    return known
            at = (at + 1) & self.mask
        else:
            return NULL
        if size > MOST_BYTES or self.count >= MOST_KNOWN or self.size > MOST_KNOWN_BYTES:
            return NULL
        name = PyUnicode_DecodeUTF8(text, size, NULL)
        if len(<str>name) > MOST_CHARACTERS:
            return NULL
        if 2 * self.count > self.mask:
            self._widen(2 * (self.mask + 1))
            at = mark & <uint32_t>self.mask
            while self.table[at].name != NULL:
                at = (at + 1) & self.mask
            known = &self.table[at]
        known.hash = hk_hash(<PyObject *>name)
        known.mark, known.size, known.number = mark, <int32_t>size, <int32_t>self.count
        memcpy(known.text, text, size if size < KEPT_TEXT else KEPT_TEXT)
        Py_INCREF(name)
        known.name = <PyObject *>name
        self.count += 1
        self.size += size
        return known


cdef KnownNames known_names = KnownNames()


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
        event.count = k
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
        """Find the names from one on; return whether all are plain, and none stands twice."""
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
            x.names_at, x.values_at, x.count = event.names_at, event.values_at, event.count
            if not self.labelled:
                made.append(kind(x) if event.id == NULL else kind(x, <object>event.id))
            elif event.id != NULL:
                made.append(kind(x, <object>event.y, event.w, <object>event.id))
            elif event.w != 1.0:
                made.append(kind(x, <object>event.y, event.w))
            else:
                made.append(kind(x, <object>event.y))
        return made


cdef object whole_number(const char *p, const char *end):
    cdef long long total = 0
    cdef bint negative = p[0] == c"-"
    p += negative
    while p < end:
        total = total * 10 + (p[0] - c"0")
        p += 1
    return -total if negative else total


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
            p = text
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
                p = text
                end = p + len(text)
                p = reading._event(past_space(p), end)
                if p == NULL or past_space(p) != end:
                    return None
    except UnicodeDecodeError:
        return None
    reading._end()
    return reading._made(kind)


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class ReadFeatures:
    """The features of an event that was read: a mapping, gathered already."""

    cdef Reading reading
    cdef Py_ssize_t names_at, values_at, count
    cdef dict found

    cdef dict _dict(self):
        cdef Py_ssize_t i
        if self.found is None:
            self.found = {
                <object>self.reading.names[self.names_at + i]: self.reading.values[self.values_at + i]
                for i in range(self.count)
            }
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


Mapping.register(ReadFeatures)

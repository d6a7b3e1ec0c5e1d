# Names: texts that were read, found by their bytes.

cdef extern from *:
    """
    /* The bytes of a text that was asked for these before. */
    static inline const char *hk_utf8(PyObject *o) {
        if (PyUnicode_IS_COMPACT_ASCII(o)) return (const char *)PyUnicode_DATA(o);
        return ((PyCompactUnicodeObject *)o)->utf8;
    }
    #if defined(__GNUC__)
    #define HK_PUBLISH(at, name) __atomic_store_n(at, name, __ATOMIC_RELEASE)
    #define HK_PUBLISHED(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
    #else
    #define HK_PUBLISH(at, name) (*(PyObject *volatile *)(at) = (name))
    #define HK_PUBLISHED(at) (*(PyObject *volatile *)(at))
    #endif
    """
    const char *hk_utf8(PyObject *) noexcept nogil
    void HK_PUBLISH(PyObject **, PyObject *) noexcept
    PyObject *HK_PUBLISHED(PyObject **) noexcept nogil

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL
    void *PyMem_Calloc(size_t, size_t) noexcept

cdef enum:
    MOST_KNOWN = 65536  # names, and
    MOST_KNOWN_BYTES = 4194304  # bytes of them, of one table
    MOST_PROBES = 128
    MOST_CHARACTERS = 256  # of a name or id
    MOST_BYTES = 1024  # of these in UTF-8
    LINE = 64
    KEPT_TEXT = 36

cdef uint64_t seed = int.from_bytes(urandom(8), "little")

cdef struct Known:  # as long as a cache line
    PyObject *name  # owned; NULL if the place is free, until all else is there
    Py_hash_t hash
    uint32_t mark
    int32_t number, size
    char[KEPT_TEXT] text  # its beginning


cdef inline uint32_t mark_of(const char *text, Py_ssize_t size) noexcept nogil:
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


cdef Known *look_up(
    Known *table, Py_ssize_t mask, const char *text, Py_ssize_t size, uint32_t mark, bint *found
) noexcept nogil:
    """Return the place of a name of some bytes, or the free one for it; NULL if it is far away.

    A free one may be taken at once by another name: `found` tells which it was.
    """
    cdef Py_ssize_t at = mark & <uint32_t>mask, probe, kept
    cdef Known *known
    found[0] = False
    for probe in range(MOST_PROBES):
        known = &table[at]
        if HK_PUBLISHED(&known.name) == NULL:
            return known
        if known.mark == mark and known.size == size:
            kept = size if size < KEPT_TEXT else KEPT_TEXT
            if memcmp(known.text, text, kept) == 0 and (
                size == kept or memcmp(hk_utf8(known.name), text, size) == 0
            ):
                found[0] = True
                return known
        at = (at + 1) & mask
    return NULL


@cython.final
cdef class KnownNames:
    """The names that were read, by their bytes; it is filled up, and then another one begun.

    Readers look names up without the lock of the interpreter, in a table that stays as long as
    they do; names are added under the lock.
    """

    cdef void *blocks[16]  # that of the table, and others before it that readers may have
    cdef int blocks_count
    cdef Known *table
    cdef Py_ssize_t mask, count, size, readers
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
        self._free_blocks(0)
        PyMem_Free(self.slots)
        PyMem_Free(self.events)

    cdef void _free_blocks(self, int left) noexcept:
        """Free the first blocks but for so many of the last."""
        cdef int i, count = self.blocks_count - left
        for i in range(self.blocks_count):
            if i < count:
                PyMem_Free(self.blocks[i])
            else:
                self.blocks[i - count] = self.blocks[i]
        self.blocks_count = left

    cdef void end_reader(self) noexcept:
        """Note that a reader has gone; free what only readers had."""
        self.readers -= 1
        if not self.readers and self.blocks_count > 1:
            self._free_blocks(1)

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
        self.blocks[self.blocks_count] = block
        self.blocks_count += 1
        self.table, self.mask = table, room - 1
        return 0

    cdef Known *find(self, const char *text, Py_ssize_t size, uint32_t mark) except? NULL:
        """Return a name of some bytes, made if it is not known; NULL if it is not plain."""
        cdef bint found
        cdef Known *known = look_up(self.table, self.mask, text, size, mark, &found)
        cdef Py_ssize_t at
        if known == NULL or found:
            return known
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
        PyUnicode_AsUTF8AndSize(name, NULL)  # from here on it has its bytes
        known.hash = hk_hash(<PyObject *>name)
        known.mark, known.size, known.number = mark, <int32_t>size, <int32_t>self.count
        memcpy(known.text, text, size if size < KEPT_TEXT else KEPT_TEXT)
        Py_INCREF(name)
        HK_PUBLISH(&known.name, <PyObject *>name)
        self.count += 1
        self.size += size
        return known


cdef KnownNames known_names = KnownNames()

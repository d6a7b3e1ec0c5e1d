# Storage: the numbers of a vector in the order of their names, which a table has.
#
# The file is long: all that touches a number of a vector stands here.

cdef void join(Storage first, Storage other) noexcept:
    """Let a vector without numbers share the table of another, which it grows along with."""
    if other.count == 0 and other.table != first.table and first.table != NULL:
        leave(other.table)
        other.table = first.table
        other.table.users += 1


cdef int find_all(Event *event, Storage a, Storage b, Storage c=None) except -1:
    """Find an event's names in vectors; their comparisons may come back to any of these."""
    cdef int left
    for left in range(MOST_TRIES):
        a._find(event)
        join(a, b)
        b._find(event)
        if c is not None:
            join(a, c)
            c._find(event)
        if a.seen == event.serial == b.seen and (c is None or c.seen == event.serial):
            return 0
    raise RuntimeError("the comparison of names goes on looking them up")


cdef int open_all(Event *event, Storage a, Storage b, Storage c=None) except -1:
    """Make an entry for each of an event's names in vectors; touch all."""
    cdef int left
    for left in range(MOST_TRIES):
        a._open(event)
        join(a, b)
        b._open(event)
        if c is not None:
            join(a, c)
            c._open(event)
        if a.seen == event.serial == b.seen:
            return 0
    raise RuntimeError("the comparison of names goes on looking them up")


cdef class Storage:
    """The numbers of a weight vector by name: see `hinged.kernel.pure.Storage`."""

    cdef Table *table  # its first names are those of the numbers; NULL: there is none yet
    cdef double *values
    cdef uint8_t *dirty
    cdef int32_t *slots  # the entry of each name of the event `seen`, -1 if it is not stored
    cdef Py_ssize_t slots_room, seen_count  # so many entries there were then
    cdef uint64_t seen, drops
    cdef bint all_found
    cdef bint by_hint  # whether a quarter of the hints were right for the event before
    cdef Py_ssize_t count, room, dirty_count
    cdef set others  # changed names that are not stored; None while there are none
    cdef bint tracked
    cdef public double bound
    cdef public bint plain

    def __cinit__(self, *args, **kwargs):
        self.plain = self.by_hint = True

    def __init__(self, values=None):
        self._drop()
        self.bound = 0.0
        if values:
            self._load(values)

    def __dealloc__(self):
        self._drop()
        PyMem_Free(self.slots)

    cdef void _drop(self) noexcept:
        cdef Table *table = self.table
        PyMem_Free(self.values)
        PyMem_Free(self.dirty)
        self.table, self.values, self.dirty = NULL, NULL, NULL
        self.count = self.room = self.dirty_count = 0
        self.seen = 0
        self.drops += 1
        leave(table)

    cdef int _load(self, dict values) except -1:
        cdef PyObject *name
        cdef PyObject *value
        cdef double size
        cdef int32_t slot
        self._reserve_all(len(values))
        for key, number_ in values.items():
            size = number_
            slot = self._opened(<PyObject *>key, hk_hash(<PyObject *>key))
            self.values[slot] = size
            if fabs(size) > self.bound:
                self.bound = fabs(size)
        return 0

    cdef int _reserve(self, Py_ssize_t count) except -1:
        """Make room for so many numbers."""
        cdef Py_ssize_t room = self.room
        if count <= room:
            return 0
        room = max(count, room + room // 2, 8)
        self.values = <double *>wider(self.values, room * sizeof(double))
        if self.tracked:
            self._flags(room)
        self.room = room
        return 0

    cdef int _reserve_all(self, Py_ssize_t count) except -1:
        """Make room for so many numbers and names."""
        self._reserve(count)
        if self.table == NULL:
            self.table = new_table()
        return reserve(self.table, count)

    cdef int _flags(self, Py_ssize_t room) except -1:
        cdef void *block = PyMem_Realloc(self.dirty, room if room else 1)
        if block == NULL:
            raise MemoryError
        self.dirty = <uint8_t *>block
        memset(self.dirty + self.count, 0, room - self.count)
        return 0

    cdef int32_t _found(self, PyObject *name, Py_hash_t hash) except -2:
        """Return the number of a name's entry, -1 if it is not stored."""
        cdef int32_t slot = self._looked_up(name, hash)
        return slot if slot < self.count else -1

    cdef int32_t _looked_up(self, PyObject *name, Py_hash_t hash) except -2:
        """Return the number of a name's entry in the table, -1 if it is not there.

        One that is not below `count` belongs to other vectors of the table.
        """
        cdef uint64_t mark, upper = <uint64_t>hash & UPPER, drops
        cdef Table *table = self.table
        cdef Py_ssize_t at, count
        cdef int32_t slot
        cdef PyObject *stored
        cdef bint same, changed
        if table == NULL or table.mask < 0:
            return -1
        at = place(hash, table.mask)
        while True:
            mark = table.index[at]
            if mark == 0:
                return -1
            if mark & UPPER == upper:
                slot = <int32_t>(<uint32_t>mark - 1)
                stored = table.entries[slot].name
                if stored == name:
                    return slot
                if table.entries[slot].hash == hash:
                    if hk_is_text(stored) and hk_is_text(name):
                        if hk_same_text(stored, name):
                            return slot
                    else:
                        drops, count = self.drops, table.count
                        Py_INCREF(<object>stored)
                        table.users += 1
                        try:
                            same = PyObject_RichCompareBool(stored, name, Py_EQ)
                        finally:
                            Py_XDECREF(stored)
                            changed = (
                                drops != self.drops or table != self.table or count != table.count
                            )
                            leave(table)
                        if changed:
                            raise RuntimeError("the vector changed while a name was looked up")
                        if same:
                            return slot
            at = (at + 1) & table.mask

    cdef int32_t _opened(self, PyObject *name, Py_hash_t hash) except -2:
        """Return the number of a name's entry, which is made if there is none: of value 0."""
        cdef int32_t slot = self._looked_up(name, hash)
        cdef set others
        if 0 <= slot < self.count:
            return slot
        if self.tracked and self.others:
            others = self.others  # held: a comparison of names may replace it
            others.discard(<object>name)
            slot = self._looked_up(name, hash)  # a comparison of names may have come back
            if 0 <= slot < self.count:
                return slot
        self._reserve(self.count + 1)
        if slot == self.count:  # other vectors of the table have the name next to those shared
            self.values[slot] = 0.0
            self.count += 1
            return slot
        return self._append(name, hash)

    cdef int32_t _append(self, PyObject *name, Py_hash_t hash) except -2:
        """Add a name to a table that has those of this vector only, and a number of 0."""
        cdef Table *before = self.table
        cdef Table *table = before
        cdef Py_ssize_t i, slot = self.count
        if before == NULL or before.count > slot:
            table = new_table()
        try:
            if table != before:
                for i in range(slot):
                    add_entry(table, before.entries[i].name, before.entries[i].hash)
            add_entry(table, name, hash)
        except MemoryError:
            if table != before:
                leave(table)
            raise
        self.values[slot] = 0.0
        self.count += 1
        if table != before:
            self.table = table
            leave(before)
        return <int32_t>slot

    cdef inline void _touch(self, int32_t slot) noexcept:
        if self.tracked and not self.dirty[slot]:
            self.dirty[slot] = 1
            self.dirty_count += 1

    cdef int _find(self, Event *event) except -1:
        """Find the entry of each name of an event: `slots` has them until the next event.

        A comparison of names may come back to this vector: `slots` changes at the end, at once.
        """
        cdef Table *table = self.table
        cdef Py_ssize_t i, count = self.count, right = 0, names = names_in(table)
        cdef int32_t slot, hint
        cdef bint again = self.seen == event.serial, all_found = True
        if again and self.seen_count == count:
            return 0
        if not again:
            self._guess(event)
        elif event.count:
            memcpy(event.places, self.slots, event.count * sizeof(int32_t))
        for i in range(event.count):
            slot = event.places[i]
            if again and slot >= 0:
                continue
            hint = hint_of(event, i)[0]
            if slot < 0 and not again and table == self.table and names == names_in(table):
                pass  # nothing of its hash is there
            elif not (
                0 <= slot < self.count and self._is_at(slot, event.names[i], event.hashes[i])
            ):
                slot = self._found(event.names[i], event.hashes[i])
            all_found = all_found and slot >= 0
            if slot >= 0 and slot != hint:
                hint_of(event, i)[0] = slot
            right += 0 <= slot == hint
            event.places[i] = slot
        if event.count > self.slots_room:
            self.slots = <int32_t *>wider(self.slots, event.count * sizeof(int32_t))
            self.slots_room = event.count
        if event.count:
            memcpy(self.slots, event.places, event.count * sizeof(int32_t))
        self.seen, self.seen_count, self.all_found = event.serial, count, all_found
        if not again:
            self.by_hint = 4 * right >= event.count
        return 0

    cdef void _guess(self, Event *event) noexcept:
        """Make `places` the entries that the names are likely to have, and fetch these.

        Of a large vector they are in no cache: what is on its way for one name is not waited
        for before the next.
        """
        cdef Table *table = self.table
        cdef int32_t *places = event.places
        cdef Py_ssize_t i
        cdef int32_t slot
        if self.count == 0:
            for i in range(event.count):
                places[i] = -1
            return
        for i in range(event.count):
            slot = hint_of(event, i)[0] if self.by_hint else -1
            if 0 <= slot < self.count:
                HK_PREFETCH(&table.entries[slot])
                HK_PREFETCH(&self.values[slot])
            else:
                slot = -1
                HK_PREFETCH(&table.index[place(event.hashes[i], table.mask)])
            places[i] = slot
        for i in range(event.count):
            if places[i] < 0:
                slot = places[i] = likely(table, event.hashes[i])
                if 0 <= slot < self.count:
                    HK_PREFETCH(&table.entries[slot])
                    HK_PREFETCH(&self.values[slot])

    cdef inline bint _is_at(self, int32_t slot, PyObject *name, Py_hash_t hash) noexcept:
        """Return whether the text `name` is that of an entry."""
        cdef Entry *entry = &self.table.entries[slot]
        return entry.name == name or (
            entry.hash == hash
            and hk_is_text(name)
            and hk_is_text(entry.name)
            and hk_same_text(entry.name, name)
        )

    cdef int _open(self, Event *event) except -1:
        """Make an entry for each name of an event that has none; touch all."""
        cdef Py_ssize_t i = 0
        cdef int32_t slot
        self._find(event)
        if self.all_found and not self.tracked:
            return 0
        while i < event.count:
            if self.slots[i] < 0:
                slot = self._opened(event.names[i], event.hashes[i])
                if self.seen != event.serial:  # a comparison of names came back to this vector
                    self._find(event)
                    i = 0
                    continue
                self.slots[i] = hint_of(event, i)[0] = slot
            self._touch(self.slots[i])
            i += 1
        self.seen_count = self.count
        self.all_found = True
        return 0

    cdef inline double _value(self, Py_ssize_t i) noexcept:
        """Return the number of the event's name i, 0 if it is not stored."""
        return self.values[self.slots[i]] if self.slots[i] >= 0 else 0.0

    cdef int _set(self, Event *event, Py_ssize_t part) except -1:
        """Set the numbers of an event's names to a part of the results."""
        cdef Py_ssize_t i
        self._open(event)
        for i in range(event.count):
            self.values[self.slots[i]] = event.results[part * event.room + i]
        self.bound = INFINITY  # not known: the next `fits` looks at all numbers
        return 0

    def __len__(self):
        return self.count

    def __sizeof__(self):
        cdef Table *table = self.table
        cdef Py_ssize_t size = self.room * (sizeof(double) + self.tracked)
        size += self.slots_room * sizeof(int32_t)
        if table != NULL:
            size += <Py_ssize_t>(
                sizeof(Table) + table.room * sizeof(Entry) + (table.mask + 1) * sizeof(uint64_t)
            ) // table.users
        return type(self).__basicsize__ + size

    def __contains__(self, name):
        return self._found(<PyObject *>name, hk_hash(<PyObject *>name)) >= 0

    def __iter__(self):
        return iter(self.names())

    def __getitem__(self, name):
        cdef int32_t slot = self._found(<PyObject *>name, hk_hash(<PyObject *>name))
        if slot < 0:
            raise KeyError(name)
        return self.values[slot]

    def __setitem__(self, name, double value):
        cdef int32_t slot = self._opened(<PyObject *>name, hk_hash(<PyObject *>name))
        self._touch(slot)
        self.values[slot] = value

    def names(self):
        cdef Py_ssize_t i
        return [<object>self.table.entries[i].name for i in range(self.count)]

    def numbers(self):
        cdef Py_ssize_t i
        return [self.values[i] for i in range(self.count)]

    def parts(self):
        cdef dict values = dict(zip(self.names(), self.numbers()))
        return values, self._changed() if self.tracked else None

    cdef set _changed(self):
        cdef Py_ssize_t i
        cdef set changed = set(self.others or ())
        cdef list names = []
        if self.dirty_count:
            for i in range(self.count):
                if self.dirty[i]:
                    names.append(<object>self.table.entries[i].name)
        changed.update(names)  # their comparison may come back
        return changed

    def set_changed(self, changed):
        if changed is None:
            self.tracked = False
            return
        self.track()
        self.put_back_changed(changed)

    def get(self, name):
        cdef int32_t slot = self._found(<PyObject *>name, hk_hash(<PyObject *>name))
        return 0.0 if slot < 0 else self.values[slot]

    def lookup(self, name, default):
        cdef int32_t slot = self._found(<PyObject *>name, hk_hash(<PyObject *>name))
        return default if slot < 0 else self.values[slot]

    def dot(self, x):
        cdef Event *event = gathered(x)
        try:
            return self._dot(event)
        finally:
            released(event)

    cdef double _dot(self, Event *event) except? -1.0:
        cdef double total = 0.0
        cdef Py_ssize_t i
        self._find(event)
        for i in range(event.count):
            total += self._value(i) * event.values[i]
        return total

    cdef double _dot_and_norm(self, Event *event) except? -1.0:
        """Return the dot product, with the event's norm for a by-product."""
        cdef double total = 0.0, squares = 0.0
        cdef Py_ssize_t i
        if event.has_norm:
            return self._dot(event)
        self._find(event)
        for i in range(event.count):
            total += self._value(i) * event.values[i]
            squares += event.values[i] * event.values[i]
        event.norm = sqrt(squares)
        if not LEAST <= squares < INFINITY:
            event.norm = norm(event.values, event.count)
        event.has_norm = True
        return total

    def view(self):
        return View(self)

    def unknown(self, names):
        return [name for name in names if self._found(<PyObject *>name, hk_hash(<PyObject *>name)) < 0]

    def newest(self, Py_ssize_t count):
        cdef Py_ssize_t i
        return [<object>self.table.entries[i].name for i in range(max(0, self.count - count), self.count)]

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
            bound = max(bound, fabs(self.values[i]))
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
        try:
            self._open(event)
            self._add_found(event, step)
        finally:
            released(event)
        return 0

    cdef void _add_found(self, Event *event, double step) noexcept:
        cdef Py_ssize_t i
        for i in range(event.count):
            self.values[self.slots[i]] = self.values[self.slots[i]] + step * event.values[i]

    def opened(self, names):
        return self  # setting an item notes that it changed

    def put(self, values):
        for name, value in values.items():
            self[name] = value
        self.bound = INFINITY

    def replace(self, Storage other):
        cdef int32_t slot
        cdef set changed = set()
        if self.tracked:
            changed = self._changed()
            changed.update([name for name in self.names() if name not in other])
            for name, value in zip(other.names(), other.numbers()):
                slot = self._found(<PyObject *>name, hk_hash(<PyObject *>name))
                if slot < 0 or self.values[slot] != <double>value:
                    changed.add(name)
        self._drop()
        if other.count:
            self._reserve(other.count)
            memcpy(self.values, other.values, other.count * sizeof(double))
            join(other, self)
            self.count = other.count
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
        if self.dirty != NULL:
            memset(self.dirty, 0, self.room)
        self.dirty_count = 0
        self.others = None
        for name in changed:
            self._change(name)
        return 0

    cdef int _change(self, name) except -1:
        cdef set others
        cdef int32_t slot = self._found(<PyObject *>name, hk_hash(<PyObject *>name))
        if slot >= 0:
            self._touch(slot)
        else:
            if self.others is None:
                self.others = set()
            others = self.others  # held, as above
            others.add(name)
        return 0

    def changed_count(self):
        if not self.tracked:
            return 0
        return self.dirty_count + (0 if self.others is None else len(self.others))

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

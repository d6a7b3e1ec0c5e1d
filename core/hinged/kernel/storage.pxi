# Storage: the numbers of a vector in the order of their names, which a table has.
#
# The file is long: all that touches a number of a vector stands here.

cdef inline void join(Storage first, Storage other) noexcept nogil:
    """Let a vector without numbers share the table of another, which it grows along with."""
    if other.count == 0 and other.table != first.table and first.table != NULL:
        leave(other.table)
        other.table = first.table
        other.table.users += 1
        other.seen = 0


cdef int share(Event *event, Storage vector) except -1 nogil:
    """Let a vector that an event is looked up in share the table of the first such one.

    It keeps its own if either would make the other much larger.
    """
    cdef Table *table = event.table
    if table == NULL:
        event.table, event.thread = vector.table, vector.thread
        if vector.table != NULL:
            vector.table.users += 1
    elif not table.plain or event.thread != vector.thread:  # a run shares none: see `Claim`
        pass
    elif vector.table == NULL:
        vector.table = table
        table.users += 1
    elif (
        vector.table.plain
        and table.count <= 4 * vector.count + 256
        and vector.count <= 4 * table.count + 256
    ):
        with gil:
            vector._move_to(table)
    return 0


cdef int stop_looking_up() except -1 nogil:
    with gil:
        raise RuntimeError("the comparison of names goes on looking them up")


cdef int find_all(Event *event, Storage a, Storage b, Storage c=None) except -1 nogil:
    """Find an event's names in vectors; their comparisons may come back to any of these."""
    cdef int left
    for left in range(MOST_TRIES):
        a._find(event)
        join(a, b)
        b._find(event)
        if c is not None:
            join(a, c)
            c._find(event)
        if a._has(event) and b._has(event) and (c is None or c._has(event)):
            return 0
    return stop_looking_up()


cdef int open_all(Event *event, Storage a, Storage b, Storage c=None) except -1 nogil:
    """Make an entry for each of an event's names in vectors; touch all."""
    cdef int left
    for left in range(MOST_TRIES):
        a._open(event)
        join(a, b)
        b._open(event)
        if c is not None:
            join(a, c)
            c._open(event)
        if a._has(event) and b._has(event) and (c is None or c._has(event)):
            return 0
    return stop_looking_up()


cdef double WAIT_S = 5e-5  # between two looks at a run of another thread
cdef dict waits = {}  # by thread: the vector whose run it waits for


cdef bint waits_for_itself(unsigned long thread) except -1:
    """Return whether the run that a thread waits for waits, in the end, for one of its own."""
    cdef Storage vector = waits.get(thread)
    cdef Py_ssize_t left
    for left in range(len(waits)):
        if vector is None or vector.thread == thread:
            break
        vector = waits.get(vector.thread)
    return vector is not None and vector.thread == thread


cdef class Storage:
    """The numbers of a weight vector by name: see `hinged.kernel.pure.Storage`."""

    cdef Table *table  # which has its names; NULL: there is none yet
    cdef int32_t *entries  # the number of each name's entry; NULL: they are the first ones, in order
    cdef int32_t *places  # by the number of an entry, that of its name from 1; NULL: likewise
    cdef Py_ssize_t places_room
    cdef double *values
    cdef uint8_t *dirty
    cdef int32_t *slots  # the number of each name of the event `seen`, -1 if it is not stored:
    cdef int32_t *own_slots  # these, or those of the table if all are the same
    cdef Py_ssize_t slots_room, seen_count  # so many numbers there were then
    cdef uint64_t seen
    cdef bint all_found
    cdef Py_ssize_t count, room, dirty_count
    cdef set others  # changed names that are not stored; None while there are none
    cdef bint tracked
    cdef unsigned long thread  # that of the run that has it: see `Claim`; 0 if there is none
    cdef int claims, waiting  # so many of that thread's, one within another; of other threads
    cdef public double bound
    cdef public bint plain

    def __cinit__(self, *args, **kwargs):
        self.plain = True

    def __init__(self, values=None):
        self._wait()
        self._drop()
        self.bound = 0.0
        if values:
            self._load(values)

    def __dealloc__(self):
        self._drop()
        PyMem_Free(self.own_slots)

    cdef void _drop(self) noexcept:
        cdef Table *table = self.table
        PyMem_Free(self.values)
        PyMem_Free(self.dirty)
        self._align()
        self.table, self.values, self.dirty = NULL, NULL, NULL
        self.count = self.room = self.dirty_count = 0
        self.seen = 0
        leave(table)

    cdef void _align(self) noexcept:
        """Go on with the first entries of the table, in order."""
        PyMem_Free(self.entries)
        PyMem_Free(self.places)
        self.entries, self.places, self.places_room = NULL, NULL, 0

    cdef inline bint _is_claimed(self) noexcept nogil:
        """Return whether the run of another thread has it."""
        return self.thread and self.thread != PyThread_get_thread_ident()

    cdef inline int _wait(self) except -1 nogil:
        """Wait for the end of a run in another thread."""
        if self._is_claimed():
            with gil:
                self._wait_for_end()
        return 0

    cdef int _wait_for_end(self) except -1:
        cdef Storage held = self  # the learner may let go of it meanwhile
        cdef unsigned long thread = PyThread_get_thread_ident()
        before = waits.get(thread)  # of a signal's handler: what it broke into
        waits[thread] = held
        held.waiting += 1
        try:
            while held._is_claimed():
                if waits_for_itself(thread):
                    raise RuntimeError("two runs wait for each other")
                sleep(WAIT_S)
        finally:
            held.waiting -= 1
            waits[thread] = before
            if before is None:
                del waits[thread]
        return 0

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
        if self.entries != NULL:
            self.entries = <int32_t *>wider(self.entries, room * sizeof(int32_t))
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
        """Return the number of a name, -1 if it is not stored."""
        return self._number(self._looked_up(name, hash))

    cdef inline int32_t _number(self, int32_t entry) noexcept nogil:
        """Return the number of the name of an entry, -1 if it is not stored."""
        if self.places == NULL:
            return entry if entry < self.count else -1
        return self.places[entry] - 1 if 0 <= entry < self.places_room else -1

    cdef inline PyObject *_name(self, Py_ssize_t i) noexcept:
        return self.table.entries[i if self.entries == NULL else self.entries[i]].name

    cdef int32_t _looked_up(self, PyObject *name, Py_hash_t hash) except -2:
        """Return the number of a name's entry in the table, -1 if it is not there."""
        cdef Table *table
        cdef int32_t entry
        cdef int left
        for left in range(MOST_TRIES):
            self._wait()  # a run may begin while names are compared
            table = self.table
            if table == NULL:
                return -1
            table.users += 1
            try:
                entry = entry_of(table, name, hash)
            finally:
                leave(table)
            if table == self.table:
                return entry
        return stop_looking_up()

    cdef int32_t _opened(self, PyObject *name, Py_hash_t hash) except -2:
        """Return the number of a name, which is made if there is none: of value 0."""
        cdef int32_t entry = self._looked_up(name, hash), slot = self._number(entry)
        cdef set others
        if slot < 0 and self.tracked and self.others:
            others = self.others  # held: a comparison of names may replace it
            others.discard(<object>name)
            entry = self._looked_up(name, hash)  # a comparison of names may have come back
            slot = self._number(entry)
        return slot if slot >= 0 else self._append(name, hash, entry)

    cdef int32_t _append(self, PyObject *name, Py_hash_t hash, int32_t entry) except -2:
        """Add a number of 0 for a name, whose entry is made if it is -1."""
        cdef Py_ssize_t slot = self.count, at
        self._reserve(slot + 1)
        if self.table == NULL:
            self.table = new_table()
        at = self.table.count if entry < 0 else entry
        if at > 8 * slot + 1024 or not (  # `places` would be larger than a table
            entry < 0 or self._is_same(&self.table.entries[entry], name)
        ):
            self._leave_others()
            entry, at = -1, slot
        if entry < 0:
            add_entry(self.table, name, hash)
        if at != slot and self.places == NULL:
            self._keep_places(self._new_entries(), self.table.count)
        if self.places != NULL:
            if at >= self.places_room:
                self._widen_places(self.table.count)
            self.places[at] = <int32_t>slot + 1
            self.entries[slot] = <int32_t>at
        self.values[slot] = 0.0
        self.count += 1
        return <int32_t>slot

    cdef inline bint _is_same(self, const Entry *entry, PyObject *name) noexcept:
        """Return whether the equal name of an entry may stand for a name, unlike 1 for 1.0."""
        return entry.name == name or (hk_is_plain(name) and hk_same_type(entry.name, name))

    cdef int _widen_places(self, Py_ssize_t room) except -1:
        room += room // 2
        self.places = <int32_t *>wider(self.places, room * sizeof(int32_t))
        memset(self.places + self.places_room, 0, (room - self.places_room) * sizeof(int32_t))
        self.places_room = room
        return 0

    cdef int _keep_places(self, int32_t *entries, Py_ssize_t names) except -1:
        """Take over the entries of all names in a table of so many, and note the place of each."""
        cdef int32_t *places = <int32_t *>PyMem_Calloc(names + 1, sizeof(int32_t))
        cdef Py_ssize_t i
        if places == NULL:
            PyMem_Free(entries)
            raise MemoryError
        self._align()
        for i in range(self.count):
            places[entries[i]] = <int32_t>i + 1
        self.entries, self.places, self.places_room = entries, places, names
        return 0

    cdef int32_t *_new_entries(self) except NULL:
        cdef Py_ssize_t i
        cdef int32_t *entries = <int32_t *>wider(NULL, self.room * sizeof(int32_t))
        for i in range(self.count):
            entries[i] = <int32_t>i if self.entries == NULL else self.entries[i]
        return entries

    cdef int _move_to(self, Table *table) except -1:
        """Give up a plain table for another one, which gets those of its names that it lacks."""
        cdef Table *before = self.table
        cdef int32_t *entries = self._new_entries()
        cdef Entry *entry
        cdef Py_ssize_t i
        cdef bint in_order = True
        try:
            for i in range(self.count):
                entry = &before.entries[entries[i]]
                if i < table.count and table.entries[i].name == entry.name:
                    entries[i] = <int32_t>i
                    continue
                entries[i] = entry_of(table, entry.name, entry.hash)
                if entries[i] < 0:
                    entries[i] = <int32_t>table.count
                    add_entry(table, entry.name, entry.hash)
                in_order = in_order and entries[i] == i
        except MemoryError:
            PyMem_Free(entries)
            raise
        if in_order:
            PyMem_Free(entries)
            self._align()
        else:
            self._keep_places(entries, table.count)
        self.table = table
        table.users += 1
        self.seen = 0
        leave(before)
        return 0

    cdef int _leave_others_of(self, list vectors) except -1:
        """Share a table with no other vectors than these."""
        cdef Storage vector
        cdef Py_ssize_t users = 0
        for vector in vectors:
            users += vector.table == self.table
        if self.table != NULL and self.table.users > users:
            self._leave_others()
        return 0

    cdef int _leave_others(self) except -1:
        """Begin a table of the own names only."""
        cdef Table *before = self.table
        cdef Table *table = new_table()
        cdef Entry *entry
        cdef Py_ssize_t i
        try:
            reserve(table, self.count + 1)
            for i in range(self.count):
                entry = &before.entries[i if self.entries == NULL else self.entries[i]]
                add_entry(table, entry.name, entry.hash)
        except MemoryError:
            leave(table)
            raise
        self._align()
        self.table = table
        leave(before)
        return 0

    cdef inline void _touch(self, int32_t slot) noexcept nogil:
        if self.tracked and not self.dirty[slot]:
            self.dirty[slot] = 1
            self.dirty_count += 1

    cdef inline bint _has(self, Event *event) noexcept nogil:
        """Return whether `slots` are those of an event."""
        cdef Found *found
        if self.seen != event.serial or self.seen_count != self.count:
            return False
        if self.slots == self.own_slots:
            return True
        found = &self.table.found[event.side]
        return found.serial == event.serial and found.slots == self.slots

    cdef int _find(self, Event *event) except -1 nogil:
        """Find the number of each name of an event: `slots` has them until the next event."""
        cdef Table *table
        cdef int left
        for left in range(MOST_TRIES):  # a comparison of names may come back to this vector
            self._wait()
            if self._has(event):
                return 0
            if self.table != event.table:
                share(event, self)
            table = self.table
            if table == NULL:
                return self._take(event, NULL)
            table.users += 1
            try:
                locate(table, event)
                if table == self.table:
                    return self._take(event, &table.found[event.side])
            finally:
                leave(table)
        return stop_looking_up()

    cdef int _take(self, Event *event, Found *found) except -1 nogil:
        """Take the numbers of an event's names from their entries, NULL if there are none."""
        cdef Py_ssize_t i = 0, count = event.count
        cdef int32_t slot
        cdef bint same = found != NULL and self.places == NULL
        if same and self.count < self.table.count:
            while i < count and found.slots[i] < self.count:
                i += 1
            same = i == count
        self.all_found = same and found.all_there
        if self.all_found:
            self.slots = found.slots
        else:
            if count > self.slots_room:
                self.own_slots = <int32_t *>wider(self.own_slots, count * sizeof(int32_t))
                self.slots_room = count
            self.slots = self.own_slots
        if same and not self.all_found:
            memcpy(self.slots, found.slots, count * sizeof(int32_t))
        elif not same:
            self.all_found = True
            for i in range(count):
                slot = self._number(found.slots[i]) if found != NULL else -1
                self.slots[i] = slot
                if slot < 0:
                    self.all_found = False
                else:
                    HK_PREFETCH(&self.values[slot])
        self.seen, self.seen_count = event.serial, self.count
        return 0

    cdef int32_t _opened_of(self, Event *event, Py_ssize_t i) except -2:
        """Return the number, which is made, of an event's name that is not stored."""
        cdef Table *table = self.table
        cdef Found *found = NULL if table == NULL else &table.found[event.side]
        cdef Entry entry
        if found == NULL or found.serial != event.serial or found.slots[i] < 0 or self.others:
            name_square(event, i)
            return self._opened(event.names[i], event.hashes[i])
        entry = table.entries[found.slots[i]]
        if event.names[i] != NULL:
            entry.name = event.names[i]
        Py_XINCREF(entry.name)
        try:
            return self._append(entry.name, entry.hash, found.slots[i])
        finally:
            Py_XDECREF(entry.name)

    cdef int _open(self, Event *event) except -1 nogil:
        """Make a number for each name of an event that has none; touch all."""
        cdef Py_ssize_t i
        self._find(event)
        if not self.all_found:
            with gil:
                self._open_missing(event)
        if self.tracked:
            for i in range(event.count):
                self._touch(self.slots[i])
        return 0

    cdef int _open_missing(self, Event *event) except -1:
        cdef Py_ssize_t i = 0
        cdef int32_t slot
        while i < event.count:
            if self.slots[i] < 0:
                slot = self._opened_of(event, i)
                if self.seen != event.serial:  # a comparison of names came back to this vector
                    self._find(event)
                    i = 0
                    continue
                self.slots[i] = slot
            i += 1
        self.seen_count = self.count
        self.all_found = True
        return 0

    cdef inline double _value(self, Py_ssize_t i) noexcept nogil:
        """Return the number of the event's name i, 0 if it is not stored."""
        return self.values[self.slots[i]] if self.slots[i] >= 0 else 0.0

    cdef int _set(self, Event *event, Py_ssize_t part) except -1 nogil:
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
        cdef Py_ssize_t number = sizeof(double) + self.tracked
        cdef Py_ssize_t size = type(self).__basicsize__
        self._wait()
        if self.entries != NULL:
            number += sizeof(int32_t)
        size += self.room * number + (self.places_room + self.slots_room) * sizeof(int32_t)
        return size if self.table == NULL else size + size_of(self.table)

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
        self._wait()
        return [<object>self._name(i) for i in range(self.count)]

    def numbers(self):
        cdef Py_ssize_t i
        self._wait()
        return [self.values[i] for i in range(self.count)]

    def parts(self):
        cdef dict values = dict(zip(self.names(), self.numbers()))
        return values, self._changed() if self.tracked else None

    cdef set _changed(self):
        cdef Py_ssize_t i
        cdef set changed
        cdef list names = []
        self._wait()
        changed = set(self.others or ())
        if self.dirty_count:
            for i in range(self.count):
                if self.dirty[i]:
                    names.append(<object>self._name(i))
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

    cdef double _dot(self, Event *event) except? -1.0 nogil:
        cdef double total = 0.0
        cdef Py_ssize_t i
        self._find(event)
        for i in range(event.count):
            total += self._value(i) * event.values[i]
        return total

    cdef double _dot_and_norm(self, Event *event) except? -1.0 nogil:
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
        self._wait()
        return [<object>self._name(i) for i in range(max(0, self.count - count), self.count)]

    def fits(self, x, double step, double norm):
        cdef double bound
        self._wait()
        bound = self.bound + fabs(step) * norm
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
        cdef double bound
        self._wait()
        bound = self.bound + fabs(step) * norm
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

    cdef int _move_found(self, Event *event, double step, double norm) except -1:
        """Add `step` times an event, of that norm, which fits."""
        self._open(event)
        self.bound = self.bound + fabs(step) * norm
        self._add_found(event, step)
        return 0

    cdef void _add_found(self, Event *event, double step) noexcept nogil:
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
        self._wait()
        other._wait()
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
            if other.places != NULL:
                self._keep_places(other._new_entries(), other.places_room)
        self.bound = other.bound
        if self.tracked:
            self._set_changed(changed)

    def clear(self):
        cdef set changed = set()
        self._wait()
        if self.tracked:
            changed = self._changed() | set(self.names())
        self._drop()
        self.bound = 0.0
        if self.tracked:
            self._set_changed(changed)

    def track(self):
        self._wait()
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

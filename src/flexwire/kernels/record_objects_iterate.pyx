"""Iterates over record batches: reads several into Python objects, and returns them one by one.

The input is an exact bytes object, and a position. A batch that is not valid, or has a wrong crc if
crcs are checked, is refused. The fallback, which is Python code, then returns the next batch or
raises an error.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from flexwire.kernels.batches cimport (
    MAGIC,
    BatchHeader,
    crc32c_begin,
    has_right_crc,
    is_compressed,
    is_sound,
    size_of,
)
from flexwire.kernels.cursor cimport load_int16, load_int32, load_int64, load_uint32
from flexwire.kernels.objects cimport *
from flexwire.kernels.output cimport PyMem_Free, PyMem_Malloc
from flexwire.kernels.record_objects cimport (
    BatchSlots,
    Classes,
    RecordCall,
    Source,
    make_sum,
    take_source,
)

cdef enum:
    # the number of bytes that are read ahead, so that the call for a step takes little time
    AHEAD = 1 << 15

crc32c_begin()


cdef inline bint put_number(PyObject **where, int64_t number) noexcept:
    where[0] = PyLong_FromLongLong(number)
    return where[0] != NULL


cdef bint put_header(PyObject *batch, const BatchSlots *slots, const BatchHeader *header) noexcept:
    """Set the fields of a batch from its header."""
    cdef int64_t base_offset = load_int64(header.base_offset)
    cdef int64_t last_delta = load_int32(header.last_offset_delta)
    cdef int64_t base_timestamp = load_int64(header.base_timestamp)
    cdef int64_t newest = load_int64(header.max_timestamp)
    if not (
        put_number(field_at(batch, slots.base_offset), base_offset)
        and put_number(field_at(batch, slots.base_timestamp), base_timestamp)
        and put_number(field_at(batch, slots.batch_length), load_int32(header.batch_length))
        and put_number(
            field_at(batch, slots.partition_leader_epoch), load_int32(header.partition_leader_epoch)
        )
        and put_number(field_at(batch, slots.magic), MAGIC)
        and put_number(field_at(batch, slots.crc), load_uint32(header.crc))
        and put_number(field_at(batch, slots.attributes), load_int16(header.attributes))
        and put_number(field_at(batch, slots.last_offset_delta), last_delta)
        and put_number(field_at(batch, slots.producer_id), load_int64(header.producer_id))
        and put_number(field_at(batch, slots.producer_epoch), load_int16(header.producer_epoch))
        and put_number(field_at(batch, slots.base_sequence), load_int32(header.base_sequence))
        and put_number(field_at(batch, slots.record_count), load_int32(header.record_count))
    ):
        return False
    # If two numbers are equal, both fields share one object.
    field_at(batch, slots.last_offset)[0] = make_sum(
        base_offset, last_delta, field_at(batch, slots.base_offset)[0]
    )
    if newest == base_timestamp:
        field_at(batch, slots.max_timestamp)[0] = Py_NewRef(field_at(batch, slots.base_timestamp)[0])
    else:
        field_at(batch, slots.max_timestamp)[0] = PyLong_FromLongLong(newest)
    return (
        field_at(batch, slots.last_offset)[0] != NULL
        and field_at(batch, slots.max_timestamp)[0] != NULL
    )


cdef PyObject *make_batch(
    const BatchSlots *slots, const Source *source, const uint8_t *at, int64_t size
) noexcept:
    """Make the object for a batch, or return NULL if there is no memory for it."""
    cdef PyObject *result = PyType_GenericAlloc(slots.type, 0)
    if result == NULL:
        return NULL
    if size == PyBytes_GET_SIZE(source.data):
        field_at(result, slots.data)[0] = Py_NewRef(source.data)
    else:
        field_at(result, slots.data)[0] = PyBytes_FromStringAndSize(<const char *> at, size)
    field_at(result, slots.check_crc)[0] = Py_NewRef(source.check_crc)
    field_at(result, slots.max_inflated)[0] = Py_NewRef(source.max_inflated)
    field_at(result, slots.records)[0] = Py_NewRef(<PyObject *> None)
    if (
        field_at(result, slots.data)[0] != NULL
        and put_number(field_at(result, slots.position), at - source.begin)
        and put_header(result, slots, <const BatchHeader *> at)
    ):
        return result
    Py_DECREF(result)
    return NULL


cdef int64_t count_ahead(const uint8_t *at, const uint8_t *end) noexcept:
    """Return how many batches to read at once, or 0 if no valid batch begins here.

    A compressed batch is read alone, because its inflated records may be kept as long as the other
    batches that were read with it.
    """
    cdef const BatchHeader *header
    cdef int64_t size
    cdef int64_t count = 0
    cdef int64_t room = AHEAD
    while is_sound(at, end - at):
        header = <const BatchHeader *> at
        size = size_of(header)
        if is_compressed(header) or size > room:
            return count or 1
        count += 1
        room -= size
        at += size
    return count


@cython.final
@cython.no_gc
cdef class BatchIterator:
    """Returns the batches of data in order; see `flexwire.records.decode_batches`.

    It reads several batches ahead. Many batches have a single record, and for these the time of a
    step matters. No Python code runs while an iterator is changed. Without a GIL, only one thread
    can use it at a time, so that no other step can come between.
    """

    cdef RecordCall call
    cdef readonly object _data
    cdef readonly object _check_crc
    cdef readonly object _max_inflated
    cdef object last_partial
    cdef public int64_t _position
    cdef bint is_held      # by the fallback, which reads the next batch
    cdef PyObject **ahead  # the batches that were read, some of which were already returned
    cdef int64_t done
    cdef int64_t count

    def __init__(self):
        raise TypeError("cannot create 'BatchIterator' instances")

    @property
    def position(self):
        """The position at which the next batch begins."""
        return self._position

    @property
    def partial(self):
        """The partial batch at the end; None if there is none, or if it was not reached yet."""
        cdef PyObject *iterator = <PyObject *> self
        cdef PyObject *result
        cdef Turn turn
        begin_turn(&turn, iterator)
        result = Py_NewRef(<PyObject *> self.last_partial)
        end_turn(&turn)
        return as_object(result)

    def _hold(self):
        """Prevent steps of the kernel until `_go_on`, and return the position of the next batch."""
        cdef PyObject *iterator = <PyObject *> self
        cdef int64_t position
        cdef Turn turn
        begin_turn(&turn, iterator)
        self.drop_ahead()
        self.is_held, position = True, self._position
        end_turn(&turn)
        return position

    def _go_on(self, int64_t position, partial):
        """Continue at a position, with the partial batch if the data has ended in one."""
        cdef PyObject *iterator = <PyObject *> self
        cdef Turn turn
        begin_turn(&turn, iterator)
        self._position, self.last_partial, self.is_held = position, partial, False
        end_turn(&turn)

    def __iter__(self):
        return self

    def __next__(self):
        cdef PyObject *iterator = <PyObject *> self
        cdef PyObject *batch
        cdef bint is_over
        cdef Turn turn
        begin_turn(&turn, iterator)
        batch = self.step()
        is_over = batch == NULL and not self.is_held and self.is_over()
        end_turn(&turn)
        if batch != NULL:
            return as_object(batch)
        if is_over:
            raise StopIteration
        return call_fallback(<PyObject *> self.call.fallback, &iterator, 1, NULL)

    def __dealloc__(self):
        self.drop_ahead()

    cdef bint is_over(self) noexcept:
        """Return whether the position is at the end, or there was nothing to read."""
        return (
            self.call is None
            or not 0 <= self._position < PyBytes_GET_SIZE(<PyObject *> self._data)
        )

    cdef PyObject *step(self) noexcept:
        """Return the next batch, reading it if necessary; NULL if the fallback must decide."""
        if self.done < self.count:
            return self.give()
        self.drop_ahead()
        if not self.is_held and not self.is_over() and self.read_ahead() and self.count:
            return self.give()
        self.drop_ahead()
        return NULL

    cdef PyObject *give(self) noexcept:
        """Return the next of the batches that were read ahead."""
        cdef PyObject *batch = self.ahead[self.done]
        self.done += 1
        self._position += PyBytes_GET_SIZE(field_at(batch, self.call.classes.batch.data)[0])
        return batch

    cdef bint read_ahead(self) noexcept:
        """Read batches at the position if none are left; return False without memory."""
        cdef Source source
        cdef const uint8_t *at
        cdef const BatchHeader *header
        cdef int64_t index, count
        source.data, source.check_crc = <PyObject *> self._data, <PyObject *> self._check_crc
        source.max_inflated = <PyObject *> self._max_inflated
        source.begin = <const uint8_t *> PyBytes_AS_STRING(source.data)
        at = source.begin + self._position
        count = count_ahead(at, source.begin + PyBytes_GET_SIZE(source.data))
        if count == 0:
            return True
        self.ahead = <PyObject **> PyMem_Malloc(count * sizeof(PyObject *))
        if self.ahead == NULL:
            return False
        for index in range(count):
            header = <const BatchHeader *> at
            if source.check_crc == Py_True and not has_right_crc(header, at + size_of(header)):
                return True
            self.ahead[index] = make_batch(
                &self.call.classes.batch, &source, at, size_of(header)
            )
            if self.ahead[index] == NULL:
                return False
            self.count += 1
            at += size_of(header)
        return True

    cdef void drop_ahead(self) noexcept:
        """Release the batches that were read ahead and not returned."""
        cdef PyObject **ahead = self.ahead
        cdef int64_t index
        cdef int64_t done = self.done
        cdef int64_t count = self.count
        self.ahead, self.done, self.count = NULL, 0, 0
        for index in range(done, count):
            Py_DECREF(ahead[index])
        PyMem_Free(ahead)


cdef object iterate(object itself, PyObject **arguments, Py_ssize_t count):
    """Return an iterator over the batches, starting at a position.

    The arguments are the data, the position, whether crcs are checked, and the limit for inflating
    records, as in `flexwire.records.decode_batches`.
    """
    cdef IteratorCall call = <IteratorCall> itself
    cdef Source source
    cdef int64_t limit
    cdef BatchIterator iterator
    if count == 4 and take_source(arguments, &source) and to_int64(arguments[3], &limit):
        if limit >= 0:
            iterator = BatchIterator.__new__(BatchIterator)
            iterator.call = call.steps
            iterator._data, iterator._check_crc = <object> source.data, <object> source.check_crc
            iterator._max_inflated = <object> arguments[3]
            iterator._position = source.rest.at - source.begin
            if iterator.read_ahead():
                return iterator
    return call_fallback(<PyObject *> call.fallback, arguments, count, NULL)


@cython.final
@cython.no_gc_clear  # the function that uses it reads it as long as the function exists
cdef class IteratorCall:
    """The data of the function that makes iterators."""

    cdef RecordCall steps  # for each iterator
    cdef object fallback

    def __init__(self, RecordCall steps, fallback):
        self.steps, self.fallback = steps, fallback


cdef PyMethodDef ITERATE = method("iterate", <void *> iterate)


def iterator_maker(Classes classes, fallback, next_fallback):
    """Return `flexwire.records.decode.iterate`, implemented with kernels.

    If the kernels are not sure of a batch, ``next_fallback`` returns the iterator's next batch or
    raises an error.
    """
    steps = RecordCall(classes, next_fallback)
    return PyCFunction_NewEx(&ITERATE, IteratorCall(steps, fallback), NULL)

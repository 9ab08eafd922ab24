"""Finds the offsets at which objects of records and batches store their fields.

The input is the two classes. `UnsuitableError` refuses classes whose objects have more than their
fields.
"""

cimport cython
from cpython.object cimport PyTypeObject

from flexwire.kernels.objects cimport Py_XDECREF, slots_of


@cython.final
@cython.no_gc_clear  # functions made from it read it as long as they exist
cdef class Classes:
    """The classes of records and batches.

    Without the second class, only records are read and written.

    Raises `UnsuitableError` for classes whose objects the kernels cannot make.
    """

    def __init__(self, record, batch=None):
        self.record_class, self.batch_class = record, batch
        slots = slots_of(record)
        self.record.type = <PyTypeObject *> record
        self.record.offset, self.record.timestamp = slots["offset"], slots["timestamp"]
        self.record.key, self.record.value = slots["key"], slots["value"]
        self.record.headers = slots["headers"]
        if batch is not None:
            self.take_batch(slots_of(batch))

    cdef int take_batch(self, dict slots) except -1:
        """Set the offsets at which a batch stores its fields."""
        cdef BatchSlots *batch = &self.batch
        batch.type = <PyTypeObject *> self.batch_class
        batch.position, batch.data = slots["position"], slots["data"]
        batch.base_offset, batch.last_offset = slots["base_offset"], slots["last_offset"]
        batch.batch_length, batch.magic = slots["batch_length"], slots["magic"]
        batch.crc, batch.attributes = slots["crc"], slots["attributes"]
        batch.max_timestamp = slots["max_timestamp"]
        batch.base_timestamp = slots["base_timestamp"]
        batch.partition_leader_epoch = slots["partition_leader_epoch"]
        batch.last_offset_delta = slots["last_offset_delta"]
        batch.producer_id, batch.producer_epoch = slots["producer_id"], slots["producer_epoch"]
        batch.base_sequence, batch.record_count = slots["base_sequence"], slots["record_count"]
        batch.check_crc, batch.max_inflated = slots["check_crc"], slots["max_inflated"]
        batch.records = slots["_records"]
        return 0

    def __dealloc__(self):
        cdef int index
        for index in range(KEYS):
            Py_XDECREF(self.keys[index])


@cython.final
@cython.no_gc_clear  # as for its classes
cdef class RecordCall:
    def __init__(self, Classes classes, fallback):
        self.classes, self.fallback = classes, fallback

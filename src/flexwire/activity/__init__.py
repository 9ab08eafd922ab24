"""What the connections of a cluster do now, from captures that grow.

`pg_stat_activity` lists the connections of a database. This room makes the same list for Kafka, and
`flexwire who` prints it. It reads captures as they grow, takes each frame once, and keeps sums. No
frame is kept, so a capture of any length takes the same memory.

- `connections` keeps the facts about each connection, and needs only its frames.
- `reading` makes frames of segments, and decides which connections are forgotten.
- `growing` reads what was added to capture files since the last time.
- `listing` orders the connections, chooses some of them, and writes them as JSON and as cells.

The laws of this room (tests below `tests/`):

- A capture that is read in parts gives the same list as a capture that is read at once
  (`activity/test_growing.py`).
- Sums equal those of `flexwire.capture.messages` (`activity/test_activity.py`).
- Memory is bounded: at most so many connections, and for each at most so many topics and waiting
  requests. What is left out is counted (`activity/test_activity.py`).
- A connection is listed only if something on it reads as Kafka, because text from other protocols
  may be anything, a password too (`activity/test_activity.py`).
"""

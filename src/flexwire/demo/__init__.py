"""The demo: an embedded cluster, real clients, and records that must not be lost.

The demo shows flexwire's main task on one machine, without Kafka. Real client libraries communicate
through the tap with librdkafka's mock cluster, whose incorrect responses are repaired. Each client
runs in its own process and verifies that it reads back the records that it wrote. If the tap
changed a byte, the client would therefore notice the change. The capture is then analyzed like any
other capture. No other package depends on the demo.
"""

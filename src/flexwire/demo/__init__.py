"""The demo: an embedded cluster, real clients, and records that must not be lost.

The demo shows flexwire's main task on one machine without Kafka. Real client libraries communicate
through the tap with librdkafka's mock cluster, whose wrong responses are corrected. Each client
runs in its own process and checks that it reads back what it wrote. If the tap changed a byte, the
client would therefore notice it. The capture is then analyzed like any other. No other package
depends on the demo.
"""

"""The demo: an embedded cluster, real clients, and records that must not be lost.

It shows the main job on one machine without Kafka. Real client libraries talk through the tap to
librdkafka's mock cluster, whose wrong responses are corrected. Each client runs in its own process
and checks that it reads back what it wrote. So a tap that changed a byte would be noticed. The
capture is then analyzed like any other. Nothing outside the demo depends on it.
"""

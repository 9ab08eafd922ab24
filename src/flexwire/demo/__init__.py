"""The demo: an embedded cluster, real clients, and what they must not lose.

It shows the main job on one machine without a Kafka: librdkafka's mock cluster, put right where it
errs, and real client libraries that talk to it through the tap. Each client runs in a process of
its own and checks that it reads what it wrote, so a tap that changed a byte would show. The capture
is then analyzed as any other. Nothing outside the demo depends on it.
"""

"""Many releases of other projects' clients, which `make trial` runs against real brokers.

Each client has a small program that creates a topic, produces, consumes in a group and commits.
After each step, the program prints the result as a line of JSON. Some clients have a second
program, which runs members of groups (`tools.clients.members`). All clients are installed below
`.build/clients` from pinned names, versions and hashes; librdkafka comes from the wheels that
include it.
"""

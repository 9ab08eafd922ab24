"""What operators ask of traffic and logs: an answer in each file."""

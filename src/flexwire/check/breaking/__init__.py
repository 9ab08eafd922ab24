"""What a change of message specs breaks: for those who speak old versions, or read old bytes."""

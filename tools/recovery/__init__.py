"""What can be done about a failure: choosing, telling, reading and carrying out one action."""

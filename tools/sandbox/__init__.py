"""The sandbox: what confines commands, proved before it is relied on."""

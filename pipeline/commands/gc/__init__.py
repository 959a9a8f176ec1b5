"""The command `gc`: removes files that no kept run, pushed version or baseline needs."""

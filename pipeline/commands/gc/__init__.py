"""The command `gc`: removes what no kept run, pushed version or baseline needs."""

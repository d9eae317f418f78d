"""Everything that decides. Standard library only; time, environment and I/O come as arguments."""

"""Other programs over the same files. `python -m bench.beside` measures them; `install.sh` gets them."""

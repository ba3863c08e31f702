"""What holds for all tests."""
import os

# the threads of linear algebra wait for each other in loops: on small matrices, beside another worker, that costs up to
# thirty times what the arithmetic does. It has to be said before NumPy is imported; workers and processes inherit it.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

"""What has to do with the machine: registers, compilation, its cache, small matrices, errors, memory, texts.

Knows nothing of robots. In: functions and numbers; out: kernels, and errors that name what is wrong.
"""

"""The common part of the bridges to JAX, PyTorch and CasADi: functions of a robot on arrays of numbers."""

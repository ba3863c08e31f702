"""What the bridges to JAX, PyTorch and CasADi have in common: functions of a robot on plain numbers."""

"""Second derivatives of local state spaces: the model of a mechanism to second order."""

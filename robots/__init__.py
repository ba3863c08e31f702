"""Robot descriptions bundled with liedyn, one TOML file each: load them with ``liedyn.load(name)``."""

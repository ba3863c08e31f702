"""Robots from files and to files, and coordinates from and to other libraries."""

from liedyn.io.load import bundled, load
from liedyn.io.mjcf import load_mjcf
from liedyn.io.save import save
from liedyn.io.sdf import load_sdf
from liedyn.io.toml import load_toml, save_toml
from liedyn.io.urdf import load_urdf

__all__ = ["bundled", "load", "load_mjcf", "load_sdf", "load_toml", "load_urdf", "save", "save_toml"]

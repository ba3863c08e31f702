"""Robots from files and to files, and conversion of coordinates from and to other libraries."""

from liedyn.files.load import bundled, load
from liedyn.files.mjcf import load_mjcf
from liedyn.files.load import save
from liedyn.files.sdf import load_sdf
from liedyn.files.toml import load_toml, save_toml
from liedyn.files.urdf import load_urdf

__all__ = ["bundled", "load", "load_mjcf", "load_sdf", "load_toml", "load_urdf", "save", "save_toml"]

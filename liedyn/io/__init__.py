"""Robots from files and to files, and coordinates from and to other libraries."""

from liedyn.io.load import bundled, load
from liedyn.io.mjcf import load_mjcf
from liedyn.io.pinocchio_reader import from_pinocchio
from liedyn.io.pinocchio_writer import to_pinocchio
from liedyn.io.save import save
from liedyn.io.sdf import load_sdf
from liedyn.io.toml import load_toml, save_toml
from liedyn.io.urdf import load_urdf

__all__ = ["bundled", "from_pinocchio", "load", "load_mjcf", "load_sdf", "load_toml", "load_urdf", "save", "save_toml",
           "to_pinocchio"]

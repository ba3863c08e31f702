"""Mechanisms and controllers as systems of python-control."""

from liedyn.systems.feedback import SystemFeedback, from_control
from liedyn.systems.mechanism import to_control

__all__ = ["SystemFeedback", "from_control", "to_control"]

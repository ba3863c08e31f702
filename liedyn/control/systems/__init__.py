"""Mechanisms and controllers as systems of python-control."""

from liedyn.control.systems.mechanism import to_control
from liedyn.control.systems.system_feedback import SystemFeedback, from_control

__all__ = ["SystemFeedback", "from_control", "to_control"]

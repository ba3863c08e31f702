"""Observers: Kalman filters at an operating point, extended ones on the manifold, and feedback of estimates."""

from liedyn.estimation.extended import ExtendedKalmanFilter
from liedyn.estimation.kalman import dkalman, kalman
from liedyn.estimation.observers import KalmanBucyFilter, KalmanFilter
from liedyn.estimation.output_feedback import OutputFeedback

__all__ = ["ExtendedKalmanFilter", "KalmanBucyFilter", "KalmanFilter", "OutputFeedback", "dkalman", "kalman"]

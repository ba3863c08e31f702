"""Observers: Kalman filters at an operating point, extended ones on the manifold, and feedback of estimates."""

from liedyn.control.estimation.extended import ExtendedKalmanFilter
from liedyn.control.estimation.kalman import dkalman, kalman
from liedyn.control.estimation.moving_horizon import MovingHorizonEstimator, moving_horizon
from liedyn.control.estimation.observers import KalmanBucyFilter, KalmanFilter
from liedyn.control.estimation.output_feedback import OutputFeedback

__all__ = ["ExtendedKalmanFilter", "KalmanBucyFilter", "KalmanFilter", "MovingHorizonEstimator", "OutputFeedback",
           "dkalman", "kalman", "moving_horizon"]

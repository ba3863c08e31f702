"""Calls from Python: conversion of arguments, and functions of kernels for batches, single states and users."""

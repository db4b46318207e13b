"""The gate: a system's score against the four nulls, with intervals and a verdict."""

from falsify_adapters.gate.curve import calibration_curve
from falsify_adapters.gate.run import run_gate
from falsify_adapters.gate.thresholds import sweep_gate

__all__ = ["calibration_curve", "run_gate", "sweep_gate"]

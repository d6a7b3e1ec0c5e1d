"""Measurements of speed as ratios, each pair taken in one go on one machine."""

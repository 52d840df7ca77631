"""Predicts what one parallel layout costs on one cluster: time, memory and traffic."""

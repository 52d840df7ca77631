"""Micro-benchmarks of the machine at hand, written as the tables that ``haplan calibrate`` reads.

Products, fused attention and memory streams on one device; collectives over processes of this
machine, gloo on CPU and NCCL on CUDA. torch is loaded in processes of their own.
"""

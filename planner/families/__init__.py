"""Spaces of one pipeline shape: equal degrees (Megatron) and chains of meshes (FlagScale)."""

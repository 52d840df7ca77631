"""Chips, links, pools and clusters as frozen values, and how two pools connect."""

"""A simulated pipeline as Chrome trace events, which Perfetto and chrome://tracing draw.

Format: "Trace Event Format", the JSON object form of the Chromium project
(docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
"""

"""transom: windows, frames and sketches over event logs, hour by hour, on Spark and Delta Lake."""

__version__ = "0.2.0"

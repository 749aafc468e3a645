"""Install what Spark needs apart from Python packages: Java, jars, settings. Standard library only."""

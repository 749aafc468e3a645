"""What Spark needs beside Python packages: Java, Delta's jars, settings. Standard library alone."""

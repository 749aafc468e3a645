"""`make images`: the image and the services of docker/, built and run without a container engine."""
